/* SPDX-License-Identifier: Apache-2.0 */
/* crm_openapi_parts.h: constant parts of the OpenAPI document, as JSON with '
 * in place of " */
#ifndef CRM_OPENAPI_PARTS_H
#define CRM_OPENAPI_PARTS_H

#define OPENAPI_HEAD \
    "'openapi':'3.1.0','info':{'title':'Workspace CRM and conversations'," \
    "'version':'1.0.0','description':'A workspace, its agents, contacts," \
    " companies, pipelines, activities, conversations, forms and outbound" \
    " sequences, as JSON over HTTP.','license':{'name':'Apache-2.0'," \
    "'identifier':'Apache-2.0'}},'servers':[{'url':'/','description':" \
    "'The host that serves this document'}],'security':[{'key':[]}]"

/* The operation GET /openapi.json. */
#define OPENAPI_OWN_PATH \
    "'/api/v1/openapi.json':{'get':{'operationId':'getOpenapi','tags':" \
    "['Meta'],'summary':'Get this document','security':[],'responses':{" \
    "'200':{'description':'OK','content':{'application/json':{'schema':{" \
    "'type':'object'}}}},'405':{'$ref':" \
    "'#/components/responses/default'},'default':{'$ref':" \
    "'#/components/responses/default'}}}}"

/* Headers of a response to a valid key. */
#define OPENAPI_HEADERS \
    "'X-RateLimit-Limit':{'$ref':'#/components/headers/X-RateLimit-Limit'}," \
    "'X-RateLimit-Remaining':{'$ref':" \
    "'#/components/headers/X-RateLimit-Remaining'}," \
    "'X-RateLimit-Reset':{'$ref':'#/components/headers/X-RateLimit-Reset'}," \
    "'X-Request-Id':{'$ref':'#/components/headers/X-Request-Id'}"

#define OPENAPI_HEADERS_401 \
    "'WWW-Authenticate':{'$ref':'#/components/headers/WWW-Authenticate'}," \
    "'X-Request-Id':{'$ref':'#/components/headers/X-Request-Id'}"

#define OPENAPI_RETRY \
    "'Retry-After':{'$ref':'#/components/headers/Retry-After'}"

/* Error statuses and their descriptions. */
#define OPENAPI_ERRORS \
    "400", "The request or its JSON is malformed", \
    "401", "The key is missing, malformed, unknown or revoked", \
    "403", "The key's scope or the workspace's plan does not allow this", \
    "404", "There is no such resource in the workspace", \
    "413", "The body is too large", \
    "415", "The body is not application/json in UTF-8", \
    "422", "A field or parameter breaks a rule", \
    "429", "The budget of the last 60 seconds is used up", \
    "500", "The server is at fault", \
    "503", "The service is not available at the moment", \
    "default", "Another error, in the same envelope"

#define OPENAPI_INTEGER_HEADER(name, text) \
    "'" name "':{'description':'" text "','schema':{'type':'integer'," \
    "'minimum':0}}"

#define OPENAPI_STRING_HEADER(name, text) \
    "'" name "':{'description':'" text "','schema':{'type':'string'}}"

#define OPENAPI_COMPONENTS \
    "'securitySchemes':{'key':{'type':'http','scheme':'bearer'," \
    "'description':'An API key of the workspace. Scope read allows GET and" \
    " HEAD, scope write everything.'}},'headers':{" \
    OPENAPI_INTEGER_HEADER("X-RateLimit-Limit", "Requests of this method" \
                           " class that 60 seconds may have; absent where" \
                           " there is no limit") "," \
    OPENAPI_INTEGER_HEADER("X-RateLimit-Remaining", "Requests left") "," \
    OPENAPI_INTEGER_HEADER("X-RateLimit-Reset", "Unix time in seconds when" \
                           " the oldest counted request leaves the window") \
    "," \
    OPENAPI_INTEGER_HEADER("Retry-After", "Seconds to wait") "," \
    OPENAPI_STRING_HEADER("X-Request-Id", "The id of this request") "," \
    OPENAPI_STRING_HEADER("WWW-Authenticate", "Bearer") "," \
    OPENAPI_STRING_HEADER("Location", "Path of the new resource") "," \
    OPENAPI_STRING_HEADER("Idempotent-Replayed", "true: nothing was done," \
                          " this is the answer to an earlier request") \
    "},'parameters':{" \
    "'id':{'name':'id','in':'path','required':true,'schema':{'type':" \
    "'string','format':'uuid'}}," \
    "'page':{'name':'page','in':'query','schema':{'type':'integer'," \
    "'minimum':1,'maximum':9007199254740991,'default':1}}," \
    "'page_size':{'name':'page_size','in':'query','schema':{'type':" \
    "'integer','minimum':1,'maximum':100,'default':25}}," \
    "'Prefer':{'name':'Prefer','in':'header','schema':{'type':'string'}," \
    "'description':'handling=lenient ignores unknown fields of a body;" \
    " handling=strict refuses unknown query parameters'}," \
    "'X-Request-Id':{'name':'X-Request-Id','in':'header','schema':{'type':" \
    "'string'},'description':'Kept if it has 1 to 128 characters of" \
    " A-Z a-z 0-9 . _ -'}}"

#define OPENAPI_REF(title) "{'$ref':'#/components/schemas/" title "'}"

/* Patterns as crm_text_email(), crm_text_phone() and crm_text_e164() check
 * them. */
#define OPENAPI_NO_BLANK "[^@\\\\s\\\\x00-\\\\x1f\\\\x7f-\\\\x9f]+"
#define OPENAPI_NO_CONTROL "[^\\\\x00-\\\\x1f\\\\x7f]*"
#define OPENAPI_ADDRESSES \
    "'EmailAddress':{'type':'string','maxLength':254,'pattern':'^" \
    OPENAPI_NO_BLANK "@" OPENAPI_NO_BLANK "$','examples':" \
    "['ada@example.com']}," \
    "'PhoneNumber':{'type':'string','maxLength':64,'pattern':'^" \
    OPENAPI_NO_CONTROL "[0-9]" OPENAPI_NO_CONTROL "$','examples':" \
    "['+49 30 901820']}," \
    "'E164Number':{'type':'string','pattern':'^[+][1-9][0-9]{1,14}$'," \
    "'examples':['+1415555010']}"

#define OPENAPI_ADDRESS(title, member, address) \
    "'" title "':{'type':'object','additionalProperties':false,'required':[" \
    "'" member "','is_primary'],'properties':{'" member "':" \
    OPENAPI_REF(address) ",'is_primary':{'type':'boolean'}}},'" title \
    "Input':{'type':'object','required':['" member "'],'properties':{'" \
    member "':" OPENAPI_REF(address) ",'is_primary':{'type':['boolean'," \
    "'null']}}}"

#define OPENAPI_ID "{'type':'string','format':'uuid'}"
#define OPENAPI_TEXT "{'type':['string','null']}"
#define OPENAPI_LINE "{'type':['string','null'],'maxLength':1000}"
#define OPENAPI_TIME "{'type':['string','null'],'format':'date-time'}"

/* A non-empty list, and a list of at most 50 addresses. */
#define OPENAPI_SOME(member) \
    "{'required':['" member "'],'properties':{'" member "':{'type':'array'," \
    "'minItems':1}}}"
#define OPENAPI_LIST(address) \
    "{'type':['array','null'],'maxItems':50,'items':" OPENAPI_REF(address) "}"

#define OPENAPI_DETAILS \
    "{'type':'array','minItems':1,'items':{'type':'object','required':[" \
    "'field','message'],'properties':{'field':{'type':'string'," \
    "'description':'emails[1].email; empty: the body itself'},'message':{" \
    "'type':'string'}}}}"

#define OPENAPI_SCHEMAS \
    "'Error':{'type':'object','additionalProperties':false,'required':[" \
    "'error'],'properties':{'error':{'type':'object'," \
    "'additionalProperties':false,'required':['code','message']," \
    "'properties':{'code':{'type':'string','enum':['bad_request'," \
    "'unauthorized','forbidden','not_found','method_not_allowed','conflict'," \
    "'payload_too_large','uri_too_long','unsupported_media_type'," \
    "'validation_error','rate_limited','internal_error'," \
    "'service_unavailable']},'message':{'type':'string'},'details':" \
    OPENAPI_DETAILS "}}}}," \
    "'ValidationError':{'allOf':[{'$ref':'#/components/schemas/Error'}]," \
    "'properties':{'error':{'required':['details']}}}," \
    "'Pagination':{'type':'object','additionalProperties':false,'required':[" \
    "'page','page_size','total','total_pages'],'properties':{'page':{" \
    "'type':'integer','minimum':1},'page_size':{'type':'integer'," \
    "'minimum':1,'maximum':100},'total':{'type':'integer','minimum':0}," \
    "'total_pages':{'type':'integer','minimum':0}}}," \
    OPENAPI_ADDRESSES "," \
    OPENAPI_ADDRESS("Email", "email", "EmailAddress") "," \
    OPENAPI_ADDRESS("Phone", "phone_number", "PhoneNumber") "," \
    "'Sequence':{'type':'object','additionalProperties':false,'required':[" \
    "'id','name','status','bot_id','template_id'],'properties':{'id':" \
    OPENAPI_ID ",'name':{'type':'string'},'status':{'type':'string','enum':" \
    "['active','completed','stopped','failed']},'bot_id':" OPENAPI_ID "," \
    "'template_id':" OPENAPI_ID "}}," \
    "'Step':{'type':'object','additionalProperties':false,'required':['id'," \
    "'sort_order','channel','status','scheduled_for','sent_at'," \
    "'to_identifier'],'properties':{'id':" OPENAPI_ID ",'sort_order':{" \
    "'type':'integer','minimum':1},'channel':{'type':'string','enum':[" \
    "'email','voice','sms']},'status':{'type':'string','enum':['scheduled'," \
    "'sending','sent','skipped','failed','cancelled']},'scheduled_for':" \
    OPENAPI_TIME ",'sent_at':" OPENAPI_TIME ",'to_identifier':" OPENAPI_TEXT \
    ",'voice_objective':" OPENAPI_TEXT ",'voice_script':" OPENAPI_TEXT "," \
    "'email_subject':" OPENAPI_TEXT ",'email_body':" OPENAPI_TEXT "," \
    "'sms_body':" OPENAPI_TEXT "}}," \
    "'UpsertInput':{'type':'object','required':['bot_id','contacts']," \
    "'properties':{'bot_id':" OPENAPI_ID ",'contacts':{'type':'array'," \
    "'maxItems':200,'items':" OPENAPI_REF("ContactItem") "}}}," \
    "'UpsertResult':{'type':'object','additionalProperties':false," \
    "'required':['created','updated','errors'],'properties':{'created':{" \
    "'type':'array','items':{'$ref':'#/components/schemas/Contact'}}," \
    "'updated':{'type':'array','items':{'$ref':" \
    "'#/components/schemas/Contact'}},'errors':{'type':'array','items':{" \
    "'type':'object','required':['index','message','details'],'properties':{" \
    "'index':{'type':'integer','minimum':0},'message':{'type':'string'}," \
    "'details':" \
    OPENAPI_DETAILS "}}}}}," \
    "'StartInput':{'type':'object','required':['template_id','contact']," \
    "'properties':{'template_id':" OPENAPI_ID ",'bot_id':{'type':['string'," \
    "'null'],'format':'uuid'},'contact':{'type':'object','anyOf':[" \
    OPENAPI_SOME("emails") "," OPENAPI_SOME("phone_numbers") "]," \
    "'properties':{'emails':" OPENAPI_LIST("EmailAddress") \
    ",'phone_numbers':" OPENAPI_LIST("E164Number") ",'first_name':" \
    OPENAPI_LINE ",'last_name':" OPENAPI_LINE ",'company':" OPENAPI_LINE "," \
    "'job_title':" OPENAPI_LINE ",'lead_source':" OPENAPI_LINE ",'notes':{" \
    "'type':['string','null'],'maxLength':65536},'custom_fields':{'type':[" \
    "'object','null'],'additionalProperties':true},'tags':{'type':['array'," \
    "'null'],'maxItems':100,'items':{'type':'string','minLength':1," \
    "'maxLength':100}}}},'auto_approve':{'type':['boolean','null']," \
    "'default':false},'idempotency_key':{'type':['string','null']," \
    "'minLength':1,'maxLength':255},'name':" OPENAPI_LINE "}}," \
    "'StartResult':{'type':'object','additionalProperties':false,'required':" \
    "['sequence_id','enrollment_id','contact_id','contact_action'," \
    "'auto_approve','status','status_url'],'properties':{'sequence_id':" \
    OPENAPI_ID ",'enrollment_id':" OPENAPI_ID ",'contact_id':" OPENAPI_ID \
    ",'contact_action':{'type':'string','enum':['created','updated']}," \
    "'auto_approve':{'type':'boolean'},'status':{'type':'string'}," \
    "'status_url':{'type':'string'}}}"

#endif /* CRM_OPENAPI_PARTS_H */
