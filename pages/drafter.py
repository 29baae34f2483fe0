"""What will each engine do with this drafter? The file against every engine's rules, then all that is in it."""

from eagle3dash.web import drafterfile, glossary, panels, pickers, proven

panels.title(
    "What will each engine do with this drafter?",
    "The file as it is: the states each version feeds, the switches it honours or drops, and what to change.",
)
glossary.words("aux states", "d2t", "drafter", "HF[k]", "replay", "target")
run = pickers.run()
drafter = drafterfile.record(run)
known = proven.diagnosis(run)
drafterfile.head(run, drafter)
proven.told(run, known)
drafterfile.engines(run, drafter, proven.proof(known))
drafterfile.readings(run, drafter)
drafterfile.vocabulary(run, drafter)
drafterfile.contents(drafter)
panels.copy_link()
