"""Failures to open a library that matter, with how much: the common ground of the rules about linking."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from bringup.evaluate.built_for import release_for, torch_of
from bringup.evaluate.loading import MissingSoname, MissingVersion, Opening, UndefinedSymbol
from bringup.evaluate.openings import Judgement, judge_all, open_all
from bringup.evaluate.sonames import gap
from bringup.evaluate.variants import Choice, choice
from bringup.facts import Facts, Known, Library, distribution
from bringup.findings import Finding, Premise, Remedy, Rule, Severity

_ROLES = ("fault", "lazy", "guarded", "unasked")
"""Roles that are a fault at all. A fault ends the import; the others show when the library is first used."""


def _severity(facts: Facts, judgement: Judgement) -> Severity:
    if judgement.role == "fault":
        return "error"
    # Something optional that is not there is a choice; parts that do not fit each other never are.
    opening = judgement.opening
    absent = all(gap(facts, entry) in ("system", "cuda_absent") for entry in opening.missing)
    return "info" if absent and not opening.versions and not opening.undefined else "warning"


@dataclass(frozen=True, slots=True)
class Fault:
    """One library whose opening fails where that matters. ``relevance``: the premises that say why it does."""

    library: Library
    opening: Opening
    severity: Severity
    relevance: tuple[Premise, ...]
    misread_as: str = ""
    order: int = 50

    @property
    def missing(self) -> tuple[MissingSoname, ...]:
        """Sonames that nothing provides."""
        return self.opening.missing

    @property
    def versions(self) -> tuple[MissingVersion, ...]:
        """Symbol versions that the libraries found do not define."""
        return self.opening.versions

    @property
    def undefined(self) -> tuple[UndefinedSymbol, ...]:
        """Symbols that nothing in scope defines."""
        return self.opening.undefined


@lru_cache(maxsize=8)
def faults(facts: Facts) -> tuple[Fault, ...]:
    """The failures that matter, torch's own first. Remembered by identity of the facts."""
    found: list[Fault] = []
    opened = open_all(facts)
    broken = opened.torch.failed
    for library, _ in opened.openings:
        if broken is not None and library.full_path == broken.path:
            found.append(
                Fault(library, broken, "error", (Premise("importing torch opens it", library.source),), order=10)
            )
    for judgement in judge_all(facts):
        library = judgement.library
        if judgement.opening.foreign or (broken is not None and library.full_path == broken.path):
            continue
        picked = _picked(facts, library)
        if picked is not None and picked.loads is False:
            continue
        if picked is not None and picked.loads and judgement.role not in ("part", "preloaded"):
            premise = Premise(f"{library.owner} loads it {picked.when}", picked.source)
            found.append(_fault(facts, judgement, premise))
        elif judgement.role in _ROLES:
            found.append(_fault(facts, judgement))
    return tuple(found)


def _picked(facts: Facts, library: Library) -> Choice | None:
    """What the table of variants says of a library on the stack's GPUs: loaded where any of them would load it."""
    gpus = facts.gpus.value if isinstance(facts.gpus, Known) else ()
    choices = [one for gpu in gpus or (None,) if (one := choice(facts, library, gpu)) is not None]
    for answer in (True, None, False):
        for one in choices:
            if one.loads is answer:
                return one
    return None


def _fault(facts: Facts, judgement: Judgement, picked: Premise | None = None) -> Fault:
    """``picked``: why the package loads just this library, where that is known."""
    site = judgement.site
    where = f"{site.module} line {site.line}" if site is not None else judgement.library.source
    return Fault(
        library=judgement.library,
        opening=judgement.opening,
        severity="error" if picked is not None else _severity(facts, judgement),
        relevance=(picked or Premise(judgement.reason, where),),
        misread_as=next((words for start, words in MISREADINGS if judgement.library.path.startswith(start)), ""),
        order=40 if picked is not None else 50,
    )


MISREADINGS = (
    ("sgl_kernel/", "a missing GPU architecture: the package prints “Could not load any common_ops library”"),
    ("deep_gemm/", "nothing at all: where no nvcc is found, the package prints an AssertionError without words"),
    ("torchcodec/", "a missing FFmpeg: the package prints a list of FFmpeg versions"),
)
"""What a package's own words around the failure suggest, where that is not the cause. From the packages' loaders."""


def finding(
    rule: Rule,
    fault: Fault,
    *,
    because: tuple[Premise, ...],
    therefore: str,
    predicted_error: str,
    remedies: tuple[Remedy, ...],
    detail: tuple[str, ...],
    hints: tuple[str, ...] = (),
    later: int = 0,
) -> Finding:
    """A finding about a library that would not open. ``later``: how far behind the loader's other errors this one comes."""
    return Finding(
        rule=rule.code,
        kind=rule.kind,
        severity=fault.severity,
        stage=rule.stage,
        subject=fault.library.path,
        because=(*because, *fault.relevance),
        therefore=therefore,
        predicted_error=predicted_error,
        misread_as=fault.misread_as,
        hints=hints,
        remedies=remedies,
        detail=detail,
        order=fault.order + later,
        fatal=fault.severity == "error",
    )


def missing_versions(
    rule: Rule, facts: Facts, prefixes: tuple[str, ...], found: str, therefore: str, remedy: str
) -> Iterator[Finding]:
    """Findings for symbol versions of the C or C++ runtime that the copy found first lacks.

    ``found`` says what is wrong with that copy, ``therefore`` what follows for the library; both follow its path.
    """
    for fault in faults(facts):
        entries = [one for one in fault.versions if one.version.startswith(prefixes)]
        if not entries:
            continue
        library, first = fault.library, entries[-1]
        yield finding(
            rule,
            fault,
            because=(
                Premise(f"{owner_label(facts, library)} asks for {first.version}", library.source),
                Premise(f"{first.library} {found}", first.library),
            ),
            therefore=f"{library.path} {therefore}",
            predicted_error=f"ImportError: {first.library}: version `{first.version}' not found "
            f"(required by {first.needed_by})",
            remedies=(Remedy(remedy),),
            detail=tuple(f"{one.version} of {one.library} for {one.needed_by}" for one in entries),
        )


def cannot_open(soname: str) -> str:
    """What the loader says of a library that it does not find."""
    return f"ImportError: {soname}: cannot open shared object file: No such file or directory"


def owner_label(facts: Facts, library: Library) -> str:
    """``sgl-kernel 0.3.21`` , or the path where no distribution owns the file."""
    owner = distribution(facts, library.owner) if library.owner else None
    return f"{owner.name} {owner.version}" if owner is not None else library.path


def subject_of(facts: Facts, full_path: str) -> str:
    """A full path without its site-packages folder."""
    for root in facts.roots:
        if full_path.startswith(root + "/"):
            return full_path[len(root) + 1 :]
    return full_path


def other_release(facts: Facts, library: Library) -> tuple[str, ...]:
    """A command that would replace the library's distribution; empty where it has none."""
    return (install(facts, f"--reinstall {library.owner}"),) if library.owner else ()


def matching_pair(facts: Facts, library: Library) -> tuple[Remedy, ...]:
    """Ways to bring a library and the installed torch together: another release of either, as far as it is known."""
    owner, torch = distribution(facts, library.owner), distribution(facts, "torch")
    if owner is None or torch is None:
        return (Remedy(f"build {library.path} against the torch that is installed"),)
    remedies = []
    release = release_for(owner.name, torch.version)
    if release is not None:
        commands = [install(facts, f"'{release}'")]
        if not release.startswith(f"{owner.name}="):
            # One project under another name: both would lay their files on the same paths.
            commands.insert(0, uninstall(facts, owner.name))
        remedies.append(Remedy(f"install {release}, which was built for torch {torch.version}", tuple(commands)))
    built = torch_of(owner)
    if built is not None and built[0] != torch.version.partition("+")[0]:
        remedies.append(
            Remedy(
                f"install torch {built[0]}, which {owner.name} {owner.version} was built for",
                (install(facts, f"torch=={built[0]}"),),
            )
        )
    if not remedies:
        remedies.append(
            Remedy(
                f"install a release of {owner.name} that was built for torch {torch.version}, or build it from source "
                "against that torch"
            )
        )
    return tuple(remedies)


def install(facts: Facts, *packages: str) -> str:
    """The command that adds packages to the judged environment."""
    return f"uv pip install{_python(facts)} {' '.join(packages)}"


def uninstall(facts: Facts, *packages: str) -> str:
    """The command that removes packages from the judged environment."""
    return f"uv pip uninstall{_python(facts)} {' '.join(packages)}"


def _python(facts: Facts) -> str:
    python = facts.python
    return f" --python {python.value.prefix}" if isinstance(python, Known) and python.value.prefix else ""
