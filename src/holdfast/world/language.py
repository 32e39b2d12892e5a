"""The language of the synthetic world, true of its scenes: everything that writers of datasets use, in one module."""

from holdfast.world.captions import Caption, Phrase, captions
from holdfast.world.commonsense import VisualQuestion, visual_commonsense
from holdfast.world.knowledge import commonsense_question
from holdfast.world.physical import physical_question
from holdfast.world.questions import Question, questions
from holdfast.world.reviews import review
from holdfast.world.statements import hypothesis, two_image_statement
from holdfast.world.stories import story_ending

__all__ = [
    "Caption",
    "Phrase",
    "Question",
    "VisualQuestion",
    "captions",
    "commonsense_question",
    "hypothesis",
    "physical_question",
    "questions",
    "review",
    "story_ending",
    "two_image_statement",
    "visual_commonsense",
]
