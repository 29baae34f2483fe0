"""Which runs are healthy? Every run with its verdict, its served and its replayed accept length."""

from eagle3dash.charts import compare
from eagle3dash.web import asking, glossary, overview, panels, pickers

panels.title(
    "Which runs are healthy?",
    "Each run's verdict, and its accept length as served and as replayed: tokens a round, bonus token included.",
)
glossary.words(*glossary.NUMBERS)
shown = pickers.page(pickers.filtered_runs())
asking.imports_under_way()
known = asking.ask(overview.diagnoses(shown), "Diagnose the runs that have no verdict yet")
for run in shown:
    overview.card(run, known.get(run.name))
numbers = overview.numbers(shown, known)
if numbers:
    panels.show(compare.numbers(numbers, overview.most_steps(shown)), "numbers")
overview.trash()
