"""What a notebook shows of an error of ours: the lines of who called us, and the sentence; not our own frames."""

from __future__ import annotations

import traceback

_LEFT_OUT = ("fuse_storage", "fuse_index", "fuse_plugins", "IPython")


def without_our_frames(error: BaseException) -> list[str]:
    """The traceback as texts, as IPython wants it, without frames of ours and without what led to the error."""
    shown = traceback.StackSummary.extract(
        (frame, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__")).partition(".")[0] not in _LEFT_OUT
    )
    said = "".join(traceback.format_exception_only(type(error), error)).rstrip()
    return ["".join(shown.format()).rstrip(), said] if shown else [said]
