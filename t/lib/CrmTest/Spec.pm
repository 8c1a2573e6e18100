# SPDX-License-Identifier: Apache-2.0
# CrmTest/Spec.pm: the specification's tables, as they stand there
package CrmTest::Spec;
use strict;
use warnings;

# Schema => [field => type, ...] in the order of its table.
our %FIELDS = (
    Agent => [
        id => "string",
        workspace_id => "string",
        name => "string or null",
        slug => "string or null",
        summary => "string or null",
        is_agent => "boolean",
        enabled => "boolean",
        public => "boolean",
        agent_role => "string or null",
        agent_type => "string or null",
        agent_status => "string or null",
        agent_color => "string or null",
        agent_email => "string or null",
        agent_phone => "string or null",
        chat_greeting => "string or null",
        chat_avatar_intro => "string or null",
        chat_avatar_image_url => "string or null",
        phone_greeting => "string or null",
        phone_voice_id => "string or null",
        text_greeting => "string or null",
        email_inbound => "boolean or null",
        email_outbound_autoreply => "boolean or null",
        email_outbound_email => "string or null",
        email_outbound_name => "string or null",
        booking_provider => "string or null",
        enabled_event_type_ids => "string[] or null",
        allow_human_takeover => "boolean",
        escalation_detection_enabled => "boolean",
        sentiment_analysis_enabled => "boolean",
        knowledge_count => "number",
        number_of_conversations => "number",
        popular_topics => "string[] or null",
        created_at => "string",
    ],
    Contact => [
        id => "string",
        workspace_id => "string",
        bot_id => "string",
        first_name => "string or null",
        last_name => "string or null",
        emails => "array",
        phone_numbers => "array",
        company => "string or null",
        company_id => "string or null",
        job_title => "string or null",
        lead_source => "string or null",
        tags => "string[]",
        deal_value => "number or null",
        pipeline_stage_id => "string or null",
        contact_type => "string or null",
        address_line1 => "string or null",
        address_line2 => "string or null",
        city => "string or null",
        state => "string or null",
        postal_code => "string or null",
        country => "string or null",
        linkedin_url => "string or null",
        notes => "string or null",
        custom_fields => "object",
        last_contacted_at => "string or null",
        created_at => "string",
        updated_at => "string",
    ],
    Company => [
        id => "string",
        workspace_id => "string",
        bot_id => "string",
        name => "string",
        domain => "string or null",
        website => "string or null",
        industry => "string or null",
        company_size => "string or null",
        company_type => "string or null",
        employee_count => "number or null",
        annual_revenue => "number or null",
        description => "string or null",
        emails => "array",
        phone_numbers => "array",
        tags => "string[]",
        total_deal_value => "number or null",
        pipeline_stage_id => "string or null",
        address_line1 => "string or null",
        address_line2 => "string or null",
        city => "string or null",
        state => "string or null",
        postal_code => "string or null",
        country => "string or null",
        linkedin_url => "string or null",
        notes => "string or null",
        custom_fields => "object",
        last_activity_at => "string or null",
        created_at => "string",
        updated_at => "string",
    ],
    Pipeline => [
        id => "string",
        workspace_id => "string",
        bot_id => "string",
        name => "string",
        is_default => "boolean",
        is_private => "boolean",
        created_at => "string",
        updated_at => "string",
    ],
    PipelineStage => [
        id => "string",
        bot_id => "string",
        pipeline_id => "string",
        name => "string",
        color => "string",
        order_index => "integer",
        created_at => "string",
        updated_at => "string",
    ],
    PipelineCard => [
        id => "string",
        pipeline_stage_id => "string",
        contact_id => "string or null",
        title => "string",
        description => "string or null",
        tags => "string[]",
        order_index => "integer",
        archived_at => "string or null",
        created_at => "string",
        updated_at => "string",
    ],
    Activity => [
        id => "string",
        contact_id => "string or null",
        company_id => "string or null",
        activity_type => "string",
        title => "string or null",
        description => "string or null",
        due_date => "string or null",
        duration_minutes => "number or null",
        completed_at => "string or null",
        metadata => "object",
        created_at => "string",
    ],
    Conversation => [
        id => "string",
        bot_id => "string",
        contact_id => "string or null",
        type => "integer",
        email => "string or null",
        phone_number => "string or null",
        human => "string or null",
        human_takeover => "boolean",
        assigned_to => "string or null",
        assigned_at => "string or null",
        active => "boolean",
        archived => "boolean or null",
        archived_at => "string or null",
        deleted => "boolean or null",
        deleted_at => "string or null",
        internal => "boolean",
        internal_notes => "string or null",
        last_message => "string or null",
        last_message_at => "string or null",
        last_active_at => "string or null",
        sentiment_positive => "boolean or null",
        sentiment_score => "number or null",
        sentiment_summary => "string or null",
        audio_url => "string or null",
        minutes => "number or null",
        visitor_id => "string or null",
        created_at => "string",
    ],
    Message => [
        id => "string",
        conversation_id => "string",
        role => "string",
        content => "string",
        content_type => "string or null",
        status => "string or null",
        tool_used => "string or null",
        tool_arguments => "object or null",
        created_at => "string",
    ],
    Form => [
        id => "string",
        workspace_id => "string",
        bot_id => "string",
        name => "string",
        description => "string or null",
        standard_fields => "object",
        custom_fields => "object",
        survey_questions => "object",
        created_at => "string",
        updated_at => "string",
    ],
    Submission => [
        id => "string",
        form_id => "string",
        contact_id => "string or null",
        custom_field_responses => "object",
        is_internal => "boolean",
        submitted_at => "string",
    ],
    Enrollment => [
        id => "string",
        sequence_id => "string",
        contact_id => "string",
        status => "string",
        generation_error => "string or null",
        approved_at => "string or null",
        stop_reason => "string or null",
        created_at => "string",
        updated_at => "string",
        sequence => "object",
        steps => "array",
    ],
    Pagination => [
        page => "integer",
        page_size => "integer",
        total => "integer",
        total_pages => "integer",
    ],
);

# Operation => the query parameters of its table, all of them.
our %PARAMETERS = (
    "GET /agents" => [qw(search slug is_agent enabled agent_type page
        page_size)],
    "GET /agents/{id}" => [],
    "GET /contacts" => [qw(search tags lead_source pipeline_stage_id bot_id
        created_after created_before updated_after page page_size)],
    "GET /contacts/by-email" => [qw(email)],
    "GET /contacts/{id}" => [],
    "POST /contacts" => [],
    "PATCH /contacts/{id}" => [],
    "DELETE /contacts/{id}" => [],
    "POST /contacts/upsert" => [],
    "GET /contacts/{id}/activities" => [qw(activity_type page page_size)],
    # "not shown" there; contract 7.9
    "GET /contacts/{id}/conversations" => [qw(bot_id contact_id visitor_id
        assigned_to type active archived human_takeover include_deleted
        created_after created_before last_message_after last_message_before
        search sort order page page_size)],
    "GET /companies" => [qw(search tags industry domain bot_id page
        page_size)],
    "GET /companies/{id}" => [],
    "POST /companies" => [],
    "PATCH /companies/{id}" => [],
    "DELETE /companies/{id}" => [],
    "GET /pipelines" => [qw(bot_id page page_size)],
    "GET /pipelines/{id}/stages" => [],
    "GET /pipeline-cards" => [qw(pipeline_id pipeline_stage_id bot_id
        contact_id include_archived page page_size)],
    "GET /pipeline-cards/{id}" => [],
    "POST /pipeline-cards" => [],
    "PATCH /pipeline-cards/{id}" => [],
    "DELETE /pipeline-cards/{id}" => [],
    "POST /activities" => [],
    "GET /conversations" => [qw(bot_id contact_id visitor_id assigned_to type
        active archived human_takeover include_deleted created_after
        created_before last_message_after last_message_before search sort
        order page page_size)],
    "GET /conversations/{id}" => [],
    "PATCH /conversations/{id}" => [],
    "DELETE /conversations/{id}" => [],
    "GET /conversations/{id}/messages" => [qw(role created_after
        created_before order page page_size)],
    "GET /forms" => [qw(bot_id page page_size)],
    "GET /forms/{id}" => [],
    "GET /forms/{id}/submissions" => [qw(include_internal page page_size)],
    "GET /submissions/{id}" => [],
    "POST /sequences/start" => [],
    "GET /sequences/enrollments/{id}" => [],
    # contract 11.12
    "POST /sequences/enrollments/{id}/approve" => [],
    "POST /sequences/enrollments/{id}/stop" => [],
);

# Schema of a body => [required], [the others].
our %BODIES = (
    ContactCreate => [[qw(bot_id)], [qw(first_name last_name company
        company_id job_title lead_source contact_type address_line1
        address_line2 city state postal_code country linkedin_url notes emails
        phone_numbers tags deal_value pipeline_stage_id custom_fields)]],
    ContactUpdate => [[], [qw(first_name last_name company
        company_id job_title lead_source contact_type address_line1
        address_line2 city state postal_code country linkedin_url notes emails
        phone_numbers tags deal_value pipeline_stage_id custom_fields)]],
    CompanyCreate => [[qw(bot_id name)], [qw(domain website industry
        company_size company_type description pipeline_stage_id address_line1
        address_line2 city state postal_code country linkedin_url notes
        employee_count annual_revenue emails phone_numbers tags
        custom_fields)]],
    CompanyUpdate => [[], [qw(name domain website industry
        company_size company_type description pipeline_stage_id address_line1
        address_line2 city state postal_code country linkedin_url notes
        employee_count annual_revenue emails phone_numbers tags
        custom_fields)]],
    PipelineCardCreate => [[qw(pipeline_stage_id title)], [qw(contact_id
        description tags order_index)]],
    PipelineCardUpdate => [[], [qw(pipeline_stage_id contact_id title
        description tags order_index archived_at)]],
    ActivityCreate => [[qw(activity_type)], [qw(contact_id company_id title
        description due_date completed_at duration_minutes metadata)]],
    ConversationUpdate => [[], [qw(internal_notes assigned_to archived
        human_takeover active)]],
    UpsertInput => [[qw(bot_id contacts)], []],
    StartInput => [[qw(template_id contact)], [qw(bot_id auto_approve
        idempotency_key name)]],
);

1;
