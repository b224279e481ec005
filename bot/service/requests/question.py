"""A question on its way from where it was asked to its run."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from bot.service.admission.access import Requester
from bot.service.commands import PROFILE_DEFAULTS, RunOptions
from council.brief import Attachment, Brief, Ceilings, Discussion, History, SentFile
from council.document.conversation import Source
from council.profile import Profile

NO_HISTORY = History()


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What somebody asked, where, and how it is to be answered.

    `entry_key` is the same for every delivery of the same question. `asker` is the asker's name
    there, `standing` what the platform says about them. `conversation_id` names the conversation that it
    continues, where that is known; `history` is what came before where that isn't stored. `attachments`
    are files that are read already, with the contents of their `pictures` in Base64 by SHA-256; `sent`
    are read before the run's first call. `needs_files`: without them, it isn't asked. `links` are pages
    to read with it. `context` says which part of a thread comes before it. `asked_in` is where a private
    question was asked, if not at its `source`. `ceilings` and `request` are a program's. `run_id` is the
    run's, where whoever asks has to know it before.
    """

    text: str
    source: Source
    entry_key: str
    standing: Requester
    asker: str | None = None
    attachments: tuple[Attachment, ...] = ()
    pictures: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    sent: tuple[SentFile, ...] = ()
    needs_files: bool = False
    links: tuple[str, ...] = ()
    context: Discussion | None = None
    options: RunOptions = PROFILE_DEFAULTS
    conversation_id: str | None = None
    asked_in: Source | None = None
    history: History = NO_HISTORY
    ceilings: Ceilings | None = None
    request: str | None = None
    run_id: str | None = None

    @property
    def place(self) -> Source:
        """Where it was asked: whose settings apply."""
        return self.asked_in or self.source

    def brief(self, profile: Profile, entropy: random.Random) -> Brief:
        """Return what a run of this question knows before anything is looked up.

        `profile` is the council that answers, with the question's options.
        """
        return Brief(
            question=self.text,
            profile=profile,
            seed=entropy.getrandbits(53),
            boundary=f"{entropy.getrandbits(64):016x}",
            notes_mark=f"{entropy.getrandbits(64):016x}" if profile.chairman_notes else None,
            asker=self.asker,
            attachments=self.attachments,
            sent=self.sent,
            needs_files=self.needs_files,
            links=self.links,
            context=self.context,
            history=self.history,
            ceilings=self.ceilings,
            request=self.request,
        )
