"""Example bodies for the API description; a test checks them against their types."""

from typing import Any, Final

_BOARD: Final[dict[str, Any]] = {
    "name": "softmax",
    "id": 3,
    "gpus": ["H100"],
    "deadline": "2027-01-31T23:59:00Z",
    "is_open": True,
    "created_at": "2026-11-01T12:00:00Z",
    "creator_id": 1,
    "task_version_id": 4,
    "visibility": "public",
    "source_visibility": "after-deadline",
    "pools": {"H100": "local"},
    "opens_at": None,
    "late_runs": False,
}
_TIME: Final[dict[str, Any]] = {"time_ns": 29140.0, "half_width_ns": 60.0}
_ENTRY: Final[dict[str, Any]] = {
    "rank": 1,
    "person": "Ada",
    "person_id": 2,
    **_TIME,
    "vs_reference": 2.5,
    "attempts": 4,
    "submission": 17,
    "submitted_at": "2026-11-02T09:30:00Z",
    "pool": "local",
}
_STANDINGS: Final[dict[str, Any]] = {
    "board": "softmax",
    "gpu": "H100",
    "task_version": 1,
    "version_note": "",
    "deadline": "2027-01-31T23:59:00Z",
    "speed_of_light_ns": 20000.0,
    "timing": "outside",
    "reference": {"time_ns": 72850.0, "half_width_ns": 150.0},
    "reference_failure": "",
    "entries": [_ENTRY],
    "absent": [],
    "pending": [
        {
            "person": "Grace",
            "person_id": 3,
            "submission": 21,
            "place": 1,
            "time": {"time_ns": 28000.0, "half_width_ns": 50.0},
            "submitted_at": "2026-11-03T09:30:00Z",
        }
    ],
    "final": None,
}
_TOKEN: Final[dict[str, Any]] = {
    "id": 5,
    "label": "laptop",
    "scope": "submit",
    "created_at": "2026-11-01T12:00:00Z",
    "expires_at": "2027-01-30T12:00:00Z",
}

_BOARD_SEEN: Final[dict[str, Any]] = {
    **_BOARD,
    "participants": 12,
    "best": [{"gpu": "H100", "person": "Ada", "submission": 17, **_TIME}],
}
_CHECK: Final[dict[str, Any]] = {
    "id": 8,
    "name": "softmax",
    "state": "published",
    "begun": ["running the solutions of softmax on H100"],
    "runs": [{"words": "solutions/correct/rows.py: passed, as expected", "ok": True}],
    "remarks": ["softmax on H100 now has task version 2."],
    "problem": None,
    "published": {
        "board": _BOARD,
        "task_version": 2,
        "version_note": "larger inputs",
        "change": "new-version",
        "checked": [{"gpu": "H100", "obstacle": ""}],
    },
    "competition": None,
    "boards": [],
}
_COMPETITION: Final[dict[str, Any]] = {
    "name": "Season",
    "state": "open",
    "opens_at": "2026-12-01T09:00:00Z",
    "closes_at": "2027-01-31T23:59:00Z",
    "description": "Two boards.",
    "creator_id": 1,
    "ranks": [25.0, 18.0, 15.0],
    "boards": [{"name": "softmax", "opens_at": None, "board": _BOARD}],
}
_CASE: Final[dict[str, Any]] = {
    "spec": "rows: 128; columns: 4096; seed: 1",
    "workload": {"args": {"rows": 128, "columns": 4096, "seed": 1}},
}
_QUEUED: Final[dict[str, Any]] = {
    "id": 21,
    "gpu": "H100",
    "state": "queued",
    "attempt": 0,
    "max_attempts": 3,
    "error": None,
    "pool": "local",
    "created_at": "2026-11-02T09:30:00Z",
    "started_at": None,
    "finished_at": None,
    "stage": None,
    "done": 0,
    "total": 0,
    "note": "",
    "place": {"position": 2, "estimate_s": 35.0, "paused": None, "running": 1},
    "evaluation": None,
}
_SUBMISSION: Final[dict[str, Any]] = {
    "id": 17,
    "task_version": 1,
    "task_version_id": 4,
    "file_name": "softmax.py",
    "source_hash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "mode": "ranked",
    "gpus": ["H100"],
    "created_at": "2026-11-02T09:30:00Z",
}

_USAGE: Final[dict[str, Any]] = {
    "day": "2026-11-02",
    "board": "softmax",
    "person_id": 3,
    "person": "Ada",
    "gpu": "H100",
    "kind": "submission",
    "evaluations": 8,
    "seconds": 310.5,
    "cost": 0.34,
}

EXAMPLES: Final[dict[str, dict[str, Any]]] = {
    "ProblemDetails": {
        "title": "Not Found",
        "status": 404,
        "code": "unknown-board",
        "detail": "no board named 'sotfmax'; did you mean softmax?",
    },
    "BoardAnswer": _BOARD_SEEN,
    "BoardsAnswer": {"boards": [_BOARD_SEEN], "next": "softmax"},
    "TaskAnswer": {
        "board": "softmax",
        "name": "softmax",
        "version": 1,
        "version_note": "",
        "created_at": "2026-11-01T12:00:00Z",
        "description": "Softmax of each row.",
        "language": "py",
        "format": "kernel",
        "grader": "native",
        "device": "any",
        "ranking_by": "geom",
        "gpus": ["H100"],
        "libraries": [],
        "multi_gpu": False,
        "tests": [_CASE],
        "benchmarks": [_CASE],
        "test_timeout_s": 180,
        "benchmark_timeout_s": 180,
        "ranked_timeout_s": 180,
        "submission_file": "submission.py",
        "files": [{"name": "reference.py", "size": 812}],
        "templates": ["Python"],
    },
    "LeaderboardsAnswer": {"board": _BOARD, "leaderboards": [_STANDINGS]},
    "BoardOptions": {"gpus": ["H100", "B200"], "deadline": "2027-02-28T23:59:00Z"},
    "GuestsOrder": {"guests": ["discord:17", "discord-role:5"]},
    "GuestsAnswer": {"guests": ["discord-role:5", "discord:17"]},
    "RejudgeOrder": {"version": 1},
    "Rejudging": {"submissions": 12, "version": 2},
    "CheckAnswer": _CHECK,
    "ChecksAnswer": {"checks": [_CHECK]},
    "CompetitionAnswer": _COMPETITION,
    "CompetitionsAnswer": {"competitions": [_COMPETITION], "next": None},
    "CompetitionStandingsAnswer": {
        **_COMPETITION,
        "leaderboards": [{"board": "softmax", "gpu": "H100"}],
        "entries": [
            {"rank": 1, "person": "Ada", "person_id": 2, "total": 25.0, "points": [25.0]},
        ],
    },
    "ExtendOrder": {"deadline": "2027-02-28T23:59:00Z"},
    "SubmissionOrder": {
        "file_name": "softmax.py",
        "source": "#!PODIUM leaderboard softmax\ndef custom_kernel(data):\n    return data\n",
        "mode": "test",
        "board": "softmax",
        "gpus": ["H100"],
    },
    "SubmissionAnswer": {
        **_SUBMISSION,
        "url": "/api/v1/submissions/17",
        "board": _BOARD,
        "person_id": 2,
        "person": "Ada",
        "state": "queued",
        "jobs": [_QUEUED],
        "exclusion": None,
        "warning": "",
        "source_statement": "Only you and admins may read your source.",
        "unserved": [],
    },
    "ProfileFiles": {"files": [{"gpu": "H100", "name": "case-1.ncu-rep"}]},
    "SubmissionNumber": {"id": 18},
    "RerunOrder": {"mode": "ranked"},
    "Withdrawal": {"reason": "it was not mine to submit"},
    "Cancelled": {"stopped": 1},
    "HistoryAnswer": {
        "submissions": [
            {
                **_SUBMISSION,
                "board": "softmax",
                "board_id": 3,
                "state": "finished",
                "results": [{"gpu": "H100", "verdict": "passed", "time": _TIME}],
            }
        ],
        "next": "17",
    },
    "SourceAnswer": {
        "submission": 17,
        "file_name": "softmax.py",
        "text": "def custom_kernel(data):\n    return data\n",
    },
    "Me": {
        "id": 2,
        "identity": "discord:17",
        "name": "Ada",
        "scope": "submit",
        "is_admin": False,
        "is_creator": False,
        "credentials": ["discord-guild:5", "discord:17"],
    },
    "TokenOrder": {"label": "laptop", "scope": "submit", "days": 90},
    "TokenMade": {**_TOKEN, "token": "podium_..."},
    "TokensAnswer": {"tokens": [_TOKEN]},
    "QueueAnswer": {
        "paused": None,
        "pools": [{"gpu": "H100", "queued": 3, "running": 1, "workers": 1, "paused": None}],
    },
    "RunnersAnswer": {
        "now": "2026-11-02T09:30:00Z",
        "runners": [
            {
                "name": "gpu-box-1:0123abcd",
                "gpus": ["H100"],
                "running": 1,
                "seen_at": "2026-11-02T09:29:58Z",
                "offers": {"local": {"harness_version": "1", "gpus": {"H100": 2}}},
            }
        ],
    },
    "DecisionBody": {"reason": "the driver was replaced"},
    "LimitKey": {"board": "softmax", "mode": "ranked"},
    "Stopped": {"stopped": 2},
    "AuditAnswer": {
        "decisions": [
            {
                "actor": "Ada",
                "action": "ban",
                "subject": "person discord:18",
                "reason": "forged times",
                "at": "2026-11-02T09:30:00Z",
            }
        ],
        "next": "90",
    },
    "RulesAnswer": {
        "limits": [
            {
                "board": "softmax",
                "mode": "ranked",
                "most": 5,
                "window_s": 3600.0,
                "identity": None,
                "reason": "",
                "until": None,
            }
        ],
        "pause": None,
        "boards": {},
        "gpus": {"H100": "the cards are being cooled"},
        "bans": [
            {"identity": "discord:18", "name": "Eve", "reason": "forged times", "until": None}
        ],
        "quotas": [
            {"unit": "seconds", "each_person": True, "board": None, "gpu": "H100", "most": 600.0}
        ],
    },
    "StatsAnswer": {
        "people": 40,
        "boards": 3,
        "days": [{"day": "2026-11-02", "submissions": 120, "people": 12}],
        "verdicts": {"passed": 90, "wrong_answer": 30},
        "backlog": {"H100": {"queued": 3, "running": 1}},
        "usage": [_USAGE],
    },
    "CostsAnswer": {"days": 7, "usage": [_USAGE], "prices": {"H100": 0.001097}},
    "QuotaOrder": {"unit": "seconds", "gpu": "H100", "most": 600.0},
    "QuotaBody": {"unit": "seconds", "gpu": "H100"},
    "BanOrder": {
        "identity": "discord:18",
        "reason": "forged times",
        "until": "2026-12-01T00:00:00Z",
    },
    "PersonDecision": {"identity": "discord:18", "reason": "forged times"},
    "PauseDecision": {"gpu": "H100", "reason": "the cards are being cooled"},
    "LimitOrder": {"board": "softmax", "mode": "ranked", "most": 5, "window_s": 3600.0},
    "FinalsAnswer": {
        "board": "softmax",
        "finals": [
            {
                "gpu": "H100",
                "top": 10,
                "created_at": "2027-02-01T08:00:00Z",
                "ended_at": "2027-02-01T08:20:00Z",
                "entries": 2,
                "compared": 1,
                "rows": [
                    {"rank": 1, "person": "Ada", "submission": 17, **_TIME, "ratio": None},
                    {
                        "rank": 2,
                        "person": "Grace",
                        "submission": 21,
                        "time_ns": 29490.0,
                        "half_width_ns": 60.0,
                        "ratio": {"ratio": 1.012, "half_width": 0.002},
                    },
                ],
            }
        ],
    },
    "FinalOrder": {"board": "softmax", "top": 10, "reason": "the end of the season"},
    "FinalKey": {"board": "softmax", "reason": "a broken card"},
    "FinalsCancelled": {"cancelled": 1},
}
"""By type name."""
