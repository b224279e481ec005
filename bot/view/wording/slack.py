"""What people read about the bot's access on Slack, and what Slack's errors are called."""

from collections.abc import Mapping

NO_ANSWER = "Slack can't be reached"
UNREADABLE = "Slack's response can't be read"
IN_TROUBLE = "Slack is having problems"
_MIGRATING = "the workspace is being moved to an organization"
_NO_CHANNEL = "the channel doesn't exist, or the bot isn't in it; invite it with /invite"
_FORM = "the form took too long to open"
_ARCHIVED = "the channel is archived"
_POLICY = "the workspace's settings don't allow it"
_SETTINGS = "this channel's settings keep the bot from posting"
_CONNECT = "this file or link may not be shared with other organizations"

TRANSIENT: Mapping[str, str] = {
    "external_channel_migrating": "the channel is being moved",
    "fatal_error": IN_TROUBLE,
    "fetch_members_failed": IN_TROUBLE,
    "file_update_failed": IN_TROUBLE,
    "internal_error": IN_TROUBLE,
    "message_limit_exceeded": "the workspace sends too many messages",
    "org_login_required": _MIGRATING,
    "request_timeout": IN_TROUBLE,
    "restricted_too_many": "too many messages are scheduled in the channel",
    "service_unavailable": IN_TROUBLE,
    "streaming_state_conflict": "the card is being written to",
    "team_added_to_org": _MIGRATING,
    "update_failed": IN_TROUBLE,
}
"""What passes."""
REVOKED: Mapping[str, str] = {
    "account_inactive": "the app was removed from the workspace",
    "invalid_auth": "Slack doesn't accept the token",
    "token_expired": "the token has expired",
    "token_revoked": "the token was revoked",
}
"""What is about the token, whatever was asked."""
GONE: Mapping[str, str] = {
    "exchanged_trigger_id": _FORM,
    "expired_trigger_id": _FORM,
    "invalid_trigger_id": _FORM,
    "cant_update_message": "the card no longer belongs to the bot",
    "channel_not_found": _NO_CHANNEL,
    "invalid_channel": _NO_CHANNEL,
    "is_archived": _ARCHIVED,
    "is_inactive": _ARCHIVED,
    "message_not_found": "the card was deleted",
    "team_not_found": "the workspace no longer exists",
    "thread_not_found": "the thread was deleted",
    "user_disabled": "the asker's account was deactivated",
    "user_not_found": "the asker's account doesn't exist",
    "user_not_in_channel": "the asker isn't in the channel",
    "user_not_visible": "the bot can't see the asker's account",
}
"""What no longer exists, or the bot can't see."""
FORBIDDEN: Mapping[str, str] = {
    "access_denied": _POLICY,
    "accesslimited": "the workspace doesn't accept requests from this network",
    "app_access_restricted": _POLICY,
    "channel_is_limited_access": "only some people may see this channel",
    "edit_window_closed": "the workspace doesn't let messages be edited so late",
    "ekm_access_denied": "the workspace's administrators have suspended posting",
    "enterprise_is_restricted": _POLICY,
    "file_upload_size_restricted": "the workspace doesn't allow files this large",
    "file_uploads_disabled": "the workspace doesn't allow files",
    "forbidden_team": _POLICY,
    "invalid_token": "Slack doesn't accept the bot's token for this",
    "invalid_user_combination": "the asker's organization shares no channel with the bot's",
    "is_bot": "a bot may not do this",
    "messages_tab_disabled": "the app's Messages tab is switched off",
    "method_not_supported_for_channel_type": "this kind of conversation doesn't allow it",
    "cant_delete_file": "Slack doesn't let the bot delete this file",
    "cant_delete_message": "Slack doesn't let the bot delete this message",
    "compliance_exports_prevent_deletion": "the workspace's compliance exports forbid deleting",
    "delete_not_allowed": "Slack doesn't let the bot delete this file",
    "file_deleting_disabled": "deleting files is turned off in the workspace",
    "no_permission": "the bot's token lacks the permission",
    "not_allowed_token_type": "the bot's token and the app's token are mixed up",
    "not_authed": "the token is missing",
    "not_in_channel": "the bot isn't in this channel; invite it with /invite",
    "posting_to_channel_denied": _SETTINGS,
    "restricted_action": _SETTINGS,
    "restricted_action_read_only_channel": "only some people may post in this channel",
    "restricted_action_thread_locked": "the thread is locked",
    "restricted_action_thread_only_channel": "this channel takes replies in threads only",
    "send_on_behalf_not_allowed": _POLICY,
    "slack_connect_canvas_sharing_blocked": _CONNECT,
    "slack_connect_file_link_sharing_blocked": _CONNECT,
    "slack_connect_lists_sharing_blocked": _CONNECT,
    "storage_limit_reached": "the workspace has no room left for files",
    "team_access_not_granted": "the app isn't allowed in this workspace",
    "no_such_subteam": "there is no such user group",
    "plan_upgrade_required": "the workspace's plan has no user groups",
    "two_factor_setup_required": "the workspace requires two-factor authentication",
}
"""A setting or a missing right keeps the bot from it."""


def lacks_scope(scope: str) -> str:
    return f"the scope {scope} is missing" if scope else "a scope is missing"


SCOPES: Mapping[str, str] = {
    "app_mentions:read": "receive mentions",
    "chat:write": "post and edit cards and threads",
    "commands": "offer slash commands and the message action",
    "files:write": "post transcripts",
    "channels:read": "call public channels by their names, and check that an asker is in one",
    "chat:write.public": "answer in public channels without being invited",
    "files:read": "read the files of a message the council is asked about",
    "groups:read": "the same for private channels",
    "im:history": "take questions in direct messages",
    "im:write": "send private answers, answers whose channel is lost, and warnings to admins",
    "usergroups:read": "know the members and names of the user groups in [access]",
    "users:read": "tell who is an admin, and call people by their names",
    "channels:history": "read the thread in which it is asked",
    "groups:history": "read the thread in which it is asked, in a private channel",
}
"""What each of the app's scopes is for."""
