"""What is said to a person instead of a traceback: one sentence on standard error, and exit code 1."""


class UserError(Exception):
    """What was asked for cannot be done; the text says what was asked, what is wrong and what to do."""


class SessionError(UserError):
    """A session that cannot be started; the text says why and what to do."""
