# SPDX-License-Identifier: Apache-2.0
# CrmTest/Spec.pm: the tables of the specification, unchanged. Tests have no
# other lists of fields or operations
#
#     CrmTest::Spec::names("Contact")             # all its fields, in order
#     CrmTest::Spec::names("Contact", "updated", "null")
package CrmTest::Spec;
use strict;
use warnings;

# Schema => [field => what, ...] in the order of its table. What: its types,
# then what bodies do with it (required: a create must have it, created,
# updated, written: both), whether it is derived from others, its values.
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
        agent_type => "string or null, one of internal external both",
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
        bot_id => "string, required",
        first_name => "string or null, written",
        last_name => "string or null, written",
        emails => "array, written",
        phone_numbers => "array, written",
        company => "string or null, written",
        company_id => "string or null, written",
        job_title => "string or null, written",
        lead_source => "string or null, written",
        tags => "string[], written",
        deal_value => "number or null, written",
        pipeline_stage_id => "string or null, written",
        contact_type => "string or null, written",
        address_line1 => "string or null, written",
        address_line2 => "string or null, written",
        city => "string or null, written",
        state => "string or null, written",
        postal_code => "string or null, written",
        country => "string or null, written",
        linkedin_url => "string or null, written",
        notes => "string or null, written",
        custom_fields => "object, written",
        # contract 20.3
        external_id => "string or null, written",
        last_contacted_at => "string or null, derived",
        # of the primary addresses (an extension)
        suppressed => "object, derived",
        created_at => "string",
        updated_at => "string",
    ],
    ContactMerged => [
        id => "string",
        merged_into => "string",
        merged_at => "string",
    ],
    Company => [
        id => "string",
        workspace_id => "string",
        bot_id => "string, required",
        name => "string, required, written",
        domain => "string or null, written",
        website => "string or null, written",
        industry => "string or null, written",
        company_size => "string or null, written",
        company_type => "string or null, written",
        employee_count => "number or null, written",
        annual_revenue => "number or null, written",
        description => "string or null, written",
        emails => "array, written",
        phone_numbers => "array, written",
        tags => "string[], written",
        total_deal_value => "number or null, derived",
        pipeline_stage_id => "string or null, written",
        address_line1 => "string or null, written",
        address_line2 => "string or null, written",
        city => "string or null, written",
        state => "string or null, written",
        postal_code => "string or null, written",
        country => "string or null, written",
        linkedin_url => "string or null, written",
        notes => "string or null, written",
        custom_fields => "object, written",
        external_id => "string or null, written",
        last_activity_at => "string or null, derived",
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
        pipeline_stage_id => "string, required, written",
        contact_id => "string or null, written",
        title => "string, required, written",
        description => "string or null, written",
        tags => "string[], written",
        order_index => "integer, written",
        archived_at => "string or null, updated",
        created_at => "string",
        updated_at => "string",
    ],
    Activity => [
        id => "string",
        contact_id => "string or null, created",
        company_id => "string or null, created",
        activity_type => "string, required, one of note call meeting
            video_call task todo reminder",
        title => "string or null, written",
        description => "string or null, written",
        due_date => "string or null, written",
        duration_minutes => "number or null, written",
        completed_at => "string or null, written",
        metadata => "object, written",
        created_at => "string",
        # contract 20.2
        updated_at => "string",
    ],
    Conversation => [
        id => "string",
        bot_id => "string",
        contact_id => "string or null",
        type => "integer",
        email => "string or null",
        phone_number => "string or null",
        human => "string or null",
        human_takeover => "boolean, updated",
        assigned_to => "string or null, updated",
        assigned_at => "string or null",
        active => "boolean, updated",
        archived => "boolean or null, updated",
        archived_at => "string or null",
        deleted => "boolean or null",
        deleted_at => "string or null",
        internal => "boolean",
        internal_notes => "string or null, updated",
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
        # contract 18.2, 18.3, 19.1
        metadata => "object",
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
        status => "string, one of generating pending_approval approved running
            stopped_reply stopped_unsubscribed stopped_user completed failed",
        generation_error => "string or null",
        approved_at => "string or null",
        stop_reason => "string or null",
        created_at => "string",
        updated_at => "string",
        sequence => "object, derived",
        steps => "array, derived",
    ],
    # contract 20.6
    Workspace => [
        id => "string",
        name => "string",
        slug => "string",
        plan => "string",
        time_zone => "string",
        currency => "string or null",
        events => "boolean, derived",
        limits => "object, derived",
        key => "object, derived",
    ],
    # contract 20.1
    SequenceTemplate => [
        id => "string",
        bot_id => "string or null",
        name => "string",
        allowed_channels => "string[]",
        stop_on_reply => "boolean",
        goal_prompt => "string or null",
        pacing => "object",
        steps => "array",
        created_at => "string",
        updated_at => "string",
    ],
    Suppression => [
        id => "string",
        email => "string or null",
        phone_number => "string or null",
        reason => "string or null",
        created_at => "string",
        updated_at => "string",
    ],
    Pagination => [
        page => "integer",
        page_size => "integer",
        total => "integer",
        total_pages => "integer",
    ],
);

# Ours: fields that "include" asks for => what bodies do with them.
our %ON_REQUEST = (
    Message => { html => "", remote_html => "" },
    Conversation => { subject => "", unanswered => "updated" },
    Enrollment => { waiting => "" },
);

# With those of contract 13.3: sort and order of lists that can be in the order
# of updated_at, and updated_after and updated_before of these.
# Ours: assigned, unanswered.
my @conversations = qw(updated_after updated_before bot_id contact_id visitor_id
    assigned_to assigned unanswered type active archived human_takeover include_deleted created_after created_before
    last_message_after last_message_before search sort order page page_size);

# With those of contract 20.1.
my @activities = qw(activity_type completed due_after due_before created_after
    created_before updated_after updated_before sort order page page_size);

# Operation => the query parameters of its table, all of them.
our %PARAMETERS = (
    "GET /agents" => [qw(search slug is_agent enabled agent_type page
        page_size)],
    "GET /agents/{id}" => [],
    # with the filters of contract 20.3
    "GET /contacts" => [qw(search tags lead_source pipeline_stage_id bot_id
        company_id has_company contact_type email phone external_id
        custom_fields.NAME
        created_after created_before updated_after updated_before sort order page
        page_size)],
    "GET /contacts/by-email" => [qw(email)],
    "GET /contacts/{id}" => [],
    "POST /contacts" => [],
    "PATCH /contacts/{id}" => [],
    "DELETE /contacts/{id}" => [],
    "POST /contacts/upsert" => [],
    # contract 20.5
    "POST /contacts/{id}/merge" => [],
    # contract 14.4
    "POST /contacts/{id}/erase" => [],
    "GET /contacts/{id}/activities" => [@activities],
    # "not shown" there; contract 7.9
    "GET /contacts/{id}/conversations" => [@conversations],
    "GET /companies" => [qw(search tags industry domain bot_id
        external_id custom_fields.NAME created_after created_before
        updated_after updated_before sort order page page_size)],
    "GET /companies/{id}" => [],
    "POST /companies" => [],
    "POST /companies/upsert" => [],
    "PATCH /companies/{id}" => [],
    "DELETE /companies/{id}" => [],
    "GET /pipelines" => [qw(bot_id page page_size)],
    "GET /pipelines/{id}/stages" => [],
    "GET /pipeline-cards" => [qw(pipeline_id pipeline_stage_id bot_id
        contact_id include_archived updated_after updated_before sort order page
        page_size)],
    "GET /pipeline-cards/{id}" => [],
    "POST /pipeline-cards" => [],
    "PATCH /pipeline-cards/{id}" => [],
    "DELETE /pipeline-cards/{id}" => [],
    "POST /activities" => [],
    # contract 20.1
    "GET /activities" => ["contact_id", "company_id", @activities],
    "GET /companies/{id}/activities" => [@activities],
    # contract 20.2
    "GET /activities/{id}" => [],
    "PATCH /activities/{id}" => [],
    "DELETE /activities/{id}" => [],
    "GET /conversations" => [@conversations],
    "GET /conversations/{id}" => [],
    "PATCH /conversations/{id}" => [],
    "DELETE /conversations/{id}" => [],
    "GET /conversations/{id}/messages" => [qw(role created_after
        created_before order page page_size wait)],
    # contract 19.1
    "POST /conversations/{id}/messages" => [],
    # contract 20.1
    "GET /messages" => [qw(conversation_id role created_after created_before
        order page page_size)],
    "GET /submissions" => [qw(form_id contact_id include_internal
        created_after created_before order page page_size)],
    "GET /sequences/enrollments" => [qw(status contact_id template_id
        created_after created_before updated_after updated_before sort order
        page page_size)],
    "GET /sequences/templates" => [qw(bot_id created_after created_before
        updated_after updated_before sort order page page_size)],
    "GET /sequences/templates/{id}" => [],
    # contract 19.4, 18.3
    "GET /conversations/{id}/messages/{message_id}" => [],
    "GET /conversations/{id}/messages/{message_id}/original" => [],
    "GET /attachments/{id}" => [],
    "GET /suppressions" => [qw(email phone_number created_after created_before
        updated_after updated_before sort order page page_size)],
    "POST /suppressions" => [],
    "GET /suppressions/{id}" => [],
    "DELETE /suppressions/{id}" => [],
    "GET /forms" => [qw(bot_id page page_size)],
    "GET /forms/{id}" => [],
    "GET /forms/{id}/submissions" => [qw(include_internal page page_size)],
    "GET /submissions/{id}" => [],
    "POST /sequences/start" => [],
    "GET /sequences/enrollments/{id}" => [],
    # contract 13.4
    "GET /events" => [qw(page_size type wait)],
    # contract 20.6
    "GET /workspace" => [],
    # contract 11.12
    "POST /sequences/enrollments/{id}/approve" => [],
    "POST /sequences/enrollments/{id}/stop" => [],
);

# Schemas of bodies that are no resource's => [required], [the others].
our %BODIES = (
    MessageInput => [[qw(content)], [qw(attachments content_type
        role subject cc)]],
    UpsertInput => [[qw(bot_id contacts)], [qw(on_match)]],
    MergeInput => [[qw(from)], []],
    CompanyUpsertInput => [[qw(bot_id companies)], [qw(on_match)]],
    # contact, or its id (an extension)
    StartInput => [[qw(template_id)], [qw(contact contact_id bot_id auto_approve
        idempotency_key name)]],
    SuppressionInput => [[], [qw(email phone_number reason)]],
);

# Members of "contact" in a StartInput.
our @START_CONTACT = qw(emails phone_numbers first_name last_name company
    job_title lead_source notes custom_fields tags);

# The words of a field's text WHAT, without its values.
sub words {
    my ($what) = @_;
    my @words = split /, | or /, $what =~ s/, one of .*//sr;
    my %implied = (required => ["created"], written => ["created", "updated"]);

    return map { ($_, @{$implied{$_} || []}) } @words;
}

# Those of them that are types.
sub types { return grep { !/(?:ed|en)$/ } words($_[0]) }

# The fields of SCHEMA, in order; with WORDS those only that have them all.
sub names {
    my ($schema, @words) = @_;
    my @table = @{$FIELDS{$schema}};
    my @names;

    while (my ($name, $what) = splice @table, 0, 2) {
        my %has = map { $_ => 1 } words($what);
        push @names, $name unless grep { !$has{$_} } @words;
    }
    return @names;
}

# The values of the fields of SCHEMA that have only some: name => [values].
sub values_of {
    my ($schema) = @_;
    my %what = @{$FIELDS{$schema}};
    my %values;

    for my $name (keys %what) {
        my ($values) = $what{$name} =~ /, one of (.*)/s or next;
        $values{$name} = [split " ", $values];
    }
    return %values;
}

# The bodies: schema => [required], [all].
sub bodies {
    my %bodies = map { $_ => [$BODIES{$_}[0],
        [map { @$_ } @{$BODIES{$_}}]] } keys %BODIES;

    for my $schema (keys %FIELDS) {
        my @created = names($schema, "created");
        my $asked = $ON_REQUEST{$schema} || {};
        my @updated = (names($schema, "updated"),
            grep { $asked->{$_} eq "updated" } keys %$asked);
        $bodies{"${schema}Create"} = [[names($schema, "required")], \@created]
            if @created;
        $bodies{"${schema}Update"} = [[], \@updated] if @updated;
    }
    return %bodies;
}

# The table of the database that SCHEMA is in: PipelineCard: pipeline_card.
sub table_of {
    my ($schema) = @_;
    return lc($schema =~ s/(?<=[a-z])(?=[A-Z])/_/gr);
}

1;
