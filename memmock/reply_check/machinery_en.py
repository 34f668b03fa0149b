"""The constructions in which an English sentence tells of machinery, as tables of regular expressions.

They are written for folded text: lower case, one space between words, straight apostrophes.
"""

from __future__ import annotations

_I = (
    r"\b(?:(?:i|we)(?:'ve|'m|'ll| have| had| am| are| will| was| were| did| do| just| already| simply"
    r"| first| quickly| only"
    r"| also| then| actually| can| could| couldn't| can't| didn't| cannot| need to| had to| have to"
    r"| tried to| tried| was able to"
    r"| went and| am going to|'m going to| went to| got to| managed to| secretly| quietly| even| now"
    r"| always| briefly){0,5}"
    r"|let me(?: just| quickly| first| go)?|lemme|allow me to|please wait while i|hang on while i) "
)
_THE = (
    r"(?:the|your(?= user (?:profile|record|file))|my|our|an?|some|this|that|one of my|one of the|a few"
    r"|two|several) "
)
_KIND = (
    r"(?:(?:internal|external|built-in|memory|memories|retrieval|search|lookup|look-up|fake|mock|remote"
    r"|persona|long-term|own"
    r"|little|user|same|right|special|backend|http|rest|json|web|vector|provider's|whole|quick|new"
    r"|hidden|profile|persona|company)[ -]){0,3}[\"'“]?"
)
_STORE = (
    r"(?:apis?|a\.p\.i\.?|a p i|databases?|data ?base|db|knowledge ?base|memory (?:banks?|stores?"
    r"|database|db|systems?|modules?|services?"
    r"|apis?|provider|tools?|endpoint|index|server|backend|plugin|interface|logs?|records?|files?"
    r"|functions?|storage)|records? systems?"
    r"|recording system|record-keeping system|vector (?:store|database|db|index)|endpoints?|backend"
    r"|back end|json|fake (?:provider|api|tool)"
    r"|retrieval (?:tool|system|service|function|engine|module|pipeline)|search (?:tool|function|api)"
    r"|lookup (?:tool|function)|look-up tool"
    r"|http (?:api|endpoint|interface)|user (?:profile|database|records?))(?![\w-])"
)
_OTHERS = (
    r"(?![\"'”]? (?:(?:that |which )?(?:you|your|he|she|they|we)\b(?! (?:like|love|prefer))|at (?:your"
    r"|his|her|work)\b|(?:course|class"
    r"|team|guy|guys|people|engineer|engineers|admin|administrator|exam|project|job|company|vendor"
    r"|design|designer|docs|documentation"
    r"|shed|box|kit|belt|bag|rental|shop|key|lecture|migration|schema|work|world|field|professor"
    r"|homework|tutorial|textbook|developers?"
    r"|conference|textbook|book)\b))"
)
_TOOL = r"(?:tools?|functions?)(?![\w-])"
_ENGINE = r"(?:tools?|functions?|servers?|systems?|providers?|plugins?|services?)(?![\w-])"
_LOOKUP = (
    r"(?:look|find|check|search|remember|recall|retrieve|fetch|get|answer|see|pull|access|read|know"
    r"|query|verify|confirm)"
)
_END = (
    r"(?=\s*(?:[.!?;:)\]*]|$|for (?:that|this|it)\b|to "
    + _LOOKUP
    + r"|and (?:it|i|"
    + _LOOKUP
    + "|found|got|here)))"
)
_THEN_YOU = (
    r"(?=[\s.,:;!?—-]*(?:(?:and|ah|yes|okay|ok|hmm|so|oh|right|well|found it|here it is|there it is|it says"
    r"|it shows|i (?:see|found)|that)\b[\s.,:;!?—-]*){0,4}"
    r"(?:you (?:\w+ )?(?:like|love|prefer|hate|dislike|enjoy|said|told|mentioned|asked|want|live|work|go by"
    r"|drink|don't|do not|quit)\b|you're (?:allergic|called|named)\b"
    r"|your (?:\w+ )?(?:name|nickname|favou?rite|preference|birthday|budget|password)\b))"
)
"""Goes on with what is remembered of the user."""
_SAYS = (
    r"(?:(?:just|also|has|have|already|only|clearly|still|then) ){0,2}(?:returned|returns|responded"
    r"|responds|says|said|shows?|showed|reports?|reported"
    r"|tells? me|told me|gave me|gives me|came back|comes back|found|timed out|times out|failed|fails"
    r"|indicates?|confirms?|confirmed|lists?"
    r"|contains?|threw|errored|suggests|has (?:you|your|a record|no|it)|is (?:down|slow|unavailable"
    r"|not responding|timing out|offline|broken|empty)"
    r"|isn't (?:responding|available|working)"
    r"|(?:can't|cannot|couldn't) (?:retrieve|access)|can(?:'t|not) find"
    r"|didn't (?:return|respond|find|answer|give|have)|doesn't (?:have|show|return|contain|list)"
    r"|couldn't find|had (?:nothing|no|your|an))\b"
)

FIRM = {
    "tells that a tool or an interface was used": (
        rf"{_I}(?:call(?:ed|ing)?|consult(?:ed|ing)?|request(?:ed|ing)?|r[au]n(?:ning)?|invok(?:e|ed|ing)"
        r"|quer(?:y|ied|ying)|ping(?:ed|ing)?"
        r"|access(?:ed|ing)?|execut(?:e|ed|ing)|trigger(?:ed|ing)?|us(?:e|ed|ing)|hit|ask(?:ed|ing)?"
        r"|connect(?:ed|ing)? to|check(?:ed|ing)? with"
        r"|ma[dk](?:e|ing) a (?:call|request) to|sen[dt](?:ing)? a (?:request|query|call) to|reach(?:ed"
        r"|ing)? out to) "
        rf"(?:up )?(?:{_THE})?{_KIND}{_STORE}{_OTHERS}",
        rf"{_I}(?:call(?:ed|ing)?|consult(?:ed|ing)?|invok(?:e|ed|ing)|quer(?:y|ied|ying)|execut(?:e|ed"
        r"|ing)|trigger(?:ed|ing)?|r[au]n(?:ning)?) "
        rf"{_THE}{_KIND}{_TOOL}{_OTHERS}",
        rf"{_I}(?:invok(?:e|ed|ing)|quer(?:y|ied|ying)|ping(?:ed|ing)?|access(?:ed|ing)?)"
        rf" {_THE}{_KIND}{_ENGINE}{_OTHERS}",
        rf"{_I}(?:us(?:e|ed|ing)|need(?:ed)?|ma[dk]e use of) (?:{_THE})?{_KIND}(?:tools?)"
        rf"(?![\w-]){_OTHERS}{_END}",
        rf"{_I}(?:ma[dk](?:e|ing)|did|ran|run|issu(?:e|ed)|perform(?:ed)?) (?:{_THE}|another )?{_KIND}"
        r"(?:api|tool|function|memory|retrieval|database) ?"
        r"(?:calls?|request|lookup|look-up|query|search|retrieval)\b",
        rf"{_I}(?:quer(?:ied|ying)|query)\b(?! your (?:friend|mother|sister|boss))",
        rf"\b(?:by|after|from) (?:calling|querying|invoking|pinging) (?:{_THE})?{_KIND}(?:{_STORE}"
        rf"|{_TOOL}){_OTHERS}",
    ),
    "tells where its memories were looked up": (
        rf"{_I}(?:check(?:ed|ing)?|search(?:ed|ing)?|consult(?:ed|ing)?|review(?:ed|ing)?|scan(?:ned|ning)?"
        r"|brows(?:e|ed|ing)|open(?:ed)?) "
        rf"(?:through )?(?:{_THE}){_KIND}{_STORE}{_OTHERS}",
        rf"{_I}(?:look\w*|pull\w*|fetch\w*|get|got|read\w*|load\w*|retriev\w*|go|went|find|found|dig\w*|dug"
        r"|search\w*|have|had|see|saw|stor(?:e|ed)|sav(?:e|ed)"
        r"|keep|kept|gr[ae]b\w*|dip\w*|know|learn\w*|took|check\w*|peek\w*)(?: (?:you|that|this|it))?"
        r"(?: (?!you\b|that\b)[\w'’“”\"]+){0,5}? (?:in|from|through|out of|up in"
        rf"|into|inside|off|with|using|via|at) (?:{_THE})?{_KIND}(?:{_STORE}|(?<=my )systems?(?![\w-])"
        rf"|(?<=the )system(?![\w-])(?! of\b)){_OTHERS}",
        rf"{_I}(?:retriev\w+|fetch\w*|load(?:ed|ing)?|access(?:ed|ing)?|pull(?:ed|ing)? up|quer\w+) (?:"
        r"(?:the|your|a|an|some|[0-9]+|two|three|four|five|several|relevant|stored|saved|past|that|those|all|of"
        r"|user|about you) ){0,4}(?:memor(?:y|ies)|records?|preferences?|profiles?|data|information|entr"
        r"(?:y|ies)|user)\b",
        r"\b(?:according to|based on|per|as per|judging by|going by|thanks to|courtesy of|based off) "
        rf"(?:{_THE})?{_KIND}(?:{_STORE}|prompt"
        r"|(?:retrieved|returned|stored|fetched|saved) (?:memories|memory|context|data|records?"
        r"|information|results?)|(?:search|query|lookup|retrieval|tool) results?"
        r"|tool (?:output|response)|response payload|records? (?:system|database)|memory (?:entry|entries"
        rf"|data)){_OTHERS}",
        r"\b(?:according to|based on|per|as per|judging by|going by) (?:the|my|our)"
        rf" {_KIND}{_ENGINE}(?! of\b){_OTHERS}",
        rf"{_I}(?:see|saw|found|find|read|know|have) (?:it )?(?:here )?(?:in|from|on) {_THE}{_KIND}"
        rf"(?:{_STORE}|system) that\b",
        rf"{_I}(?:have|had|got|received|was given|were given) (?:direct )?(?:access to )?(?:{_THE}){_KIND}"
        rf"(?:json|database|api|memory tool|tool output)(?![\w-]){_OTHERS}",
        rf"{_I}(?:don't|do not|no longer) have access to (?:{_THE})?{_KIND}{_STORE}{_OTHERS}",
        r"\b(?:according to|based on|per|as per) (?:my|our) (?:internal |stored |own )?(?:records?|logs?"
        r"|files?|data)(?![\w-])(?! (?:collection|player|label|you))",
        rf"{_I}(?:check|consult|search|review|scan|go through|went through"
        r"|look(?:ed|ing)? (?:through|at|in|into))"
        r"(?:ed|ing)? (?:through |in )?(?:my|our) (?:internal |stored |saved |own ){0,2}"
        r"(?:records?|logs?|files?|data)"
        rf"(?![\w-]){_THEN_YOU}",
        r"\b(?:let me|lemme|allow me to)(?: just| quickly| first)? (?:check|consult|search|review) (?:my|our)"
        r" (?:internal |stored |saved |own ){0,2}(?:records|logs|data)(?=[.!\s]*$)",
        r"\b(?:according to|based on|per|as per|judging by|going by|based off) (?:your|the|my|our)"
        r" (?:(?:stored|saved|recorded|retrieved|logged|cached|registered) (?:user |personal )?"
        r"(?:preferences?|memor(?:y|ies)|data|information|info|details|profiles?|records?|likes|history)"
        r"|(?:preferences?|profile|data|details|history) (?:on file|on record))(?![\w-])"
        r"(?! (?:from|on|in|of) (?:the|your|his|her|their)\b)",
        r"\b(?:my|our) (?:internal |stored )?(?:records?|logs?|data|files?) (?:show|say|indicate|tell"
        r"|suggest|reflect)s?\b",
        r"\bmy (?:\w+ )?(?:databases?|db|knowledge ?base|memory (?:banks?|stores?|systems?|modules?"
        r"|records?|logs?|index|storage|files?)|records? systems?"
        r"|retrieval (?:tool|system|module)|context window|training data|source code|backend|apis?)"
        r"(?![\w-])(?! is (?:coffee|tea|my))",
    ),
    "tells that something was returned by machinery": (
        rf",[\"'”]? (?:(?:the|my|our) {_KIND}(?:{_STORE}|{_ENGINE}) (?:says|said|shows|showed|tells me"
        rf"|told me|reports|returned)|(?:says|said) (?:the|my) {_KIND}{_STORE})\s*[.!]?$",
        r"(?:^|[\n.!?:,;—(] ?)(?:(?:so|well|okay|ok|yes|hmm|sorry|and|but|oh|ah|because|since)"
        rf",? ){{0,2}}(?P<what>(?:the|my|our) {_KIND}(?:{_STORE}|tools?|system|server|search|lookup|query) "
        rf"(?:{_SAYS})(?: (?:that|me|back|up|with)){{0,2}})(?=:? [\"'“]?(?:(?:you|your|our)\b|the (?:user"
        r"|password|code)))",
        r"\bthe provider (?:just |has )?(?:returned|gave me|sent me) your"
        r"(?! (?:call|money|deposit|payment|order))",
    ),
    "tells of its own instructions": (
        r"\b(?:my|the|our) system prompt\b|\bmy (?:initial |original )?prompt(?! reply| response| answer|ly"
        r"|ness| attention| arrival)\b(?: (?:says|tells|told|has))?",
        r"\b(?:my|the) (?:system )?(?:instructions|programming|prompt) (?:say|says|tell|tells|told|ask|asks"
        r"|require|requires|instructs?) (?:me|that i|i)\b",
        r"\bas an? (?:ai |large |artificial )?(?:language )?(?:language model|llm|ai model|ai language)\b"
        r"|\bi(?:'m| am) (?:just |only )?an? (?:ai |large )?language model\b",
    ),
}
"""What tells of the speaker's own machinery, by what it tells."""

LOOSE = {
    "tells that a tool or an interface was used": (
        r"(?:^|[\n.!?:,;—(\[*] ?)(?P<what>(?:calling|invoking|querying|accessing|executing|pinging|running"
        rf"|using|checking|searching|consulting) (?:{_THE})?{_KIND}"
        rf"(?:{_STORE}|tools?|functions?|system)(?: now| first)?)(?=\s*(?:[.,!…;:)\]*—]|$|for (?:you|that"
        rf"|this|your)|to {_LOOKUP}))",
        r"\b(?:tool|function|api|memory|database) calls?\b|\b(?:tool|function)[- ]calling\b",
        r"\b(?:fake|mock) (?:memory )?(?:provider|api)\b"
        r"|\bmemory (?:api|provider|endpoint|service|plugin|tool"
        r"|database|store|retrieval|lookup|query|backend)s?\b",
        r"\b(?:api|http|json|tool|endpoint) (?:responses?|results?|output|payload|request|object|errors?)\b",
        r"\b(?:with|using|via|through) (?:the help of )?(?:an?|the) (?:api|(?:memory|search|lookup"
        r"|retrieval) tool)\b",
    ),
    "tells where its memories were looked up": (
        r"(?:^|[\n.!?:,;—(\[*] ?)(?P<what>(?:retrieving|searching|fetching|loading|querying|accessing)(?: "
        r"(?:your|the|relevant|stored|saved|long-term|user|for))* "
        r"(?:memory|memories|records?|profile|preferences)(?=\s*(?:[.,!…;:)\]*—]|$)))",
        r"\b(?:is|are|was|were|been|'s|'re|i've|have|has|it|that|you|comes?|came|got|all)(?: (?:right|all"
        rf"|safely|still|currently|directly|already|been|being|straight)){{0,2}}"
        r" (?:told|given|informed|stored|saved|recorded|logged|kept|retrieved|fetched|loaded|pulled"
        r"|looked up|found|returned|provided|supplied|read|cached|listed|noted|straight|from|came|come)"
        r"(?: (?:right|here|there|for me|up|straight|down|safely|back|directly|you))* ?(?:in|from|via|by"
        rf"|through|to|with|on|out of|inside) (?:the|my|our|an) {_KIND}(?:{_STORE}|{_ENGINE}){_OTHERS}",
        rf"\b(?:the|my|our) {_KIND}(?:{_STORE}|tool|system|provider|server)'s (?:response|output|results?"
        r"|answer|reply|data)\b",
        rf"\b(?:records?|entry|notes?|files?) (?:of you |about you )?in (?:the|my|our) "
        rf"{_KIND}(?:{_STORE}|system(?![\w-])(?! of\b))"
        rf"{_OTHERS}",
        rf"\b(?:what's|what is|it's|that's|it is) in (?:the|my|our) {_KIND}{_STORE}{_OTHERS}",
        r"\b(?:retrieved|stored|fetched|returned) (?:memor(?:y|ies)|context|records?|data|results?)\b",
        r"\b(?:search|query|lookup|retrieval|tool) (?:results?|output|response) ?:",
        rf"\b(?:the|my|our) {_KIND}(?:database|knowledge ?base|api|memory store) "
        r"(?:entry|entries|records?|lookup|look-up|search|query|results?) "
        r"(?:for|of|about|on|says?|shows?|has|have|mentions?)\b",
        r"\b(?:search|query|lookup|retrieval) results? (?:show|say|indicate|suggest|return|include|tell"
        r"|came)\w*\b",
        r"\b(?:memory|record) (?:entry|entries|#|number|no\.|id)\b",
    ),
    "tells that something was returned by machinery": (
        r"(?:^|[\n.!?:,;—(] ?|\b(?:and|but|because|so|since|that|sorry|seems|think|afraid|like|as|what|hmm"
        rf"|well|okay) )(?P<what>(?:the|my|our|an?) {_KIND}(?:{_STORE}|tools?|system|query|lookup|retrieval"
        r"|memory search"
        rf"|function|plugin|memory service) {_SAYS})",
        r"(?P<what>\b(?:the|our|my) (?:\w+ )?(?:server|provider|service) (?:just )?(?:returned (?:an?|no"
        r"|nothing|empty|[0-9]|error)|responded|timed out|errored|failed"
        r"|is (?:down|unavailable|not responding|overloaded|timing out|offline)|isn't responding"
        r"|didn't respond))",
        r"\b(?:the|my|your|our) (?:\w+ )?(?:request|query|connection|retrieval|lookup|fetch|search) (?:has "
        r"|just )?(?:timed out|failed|was refused|returned|errored|came back empty)\b",
        r"\b(?:internal server error|bad gateway|gateway timeout|service unavailable|connection (?:refused"
        r"|reset|timed out)|status code [0-9]*|rate[- ]limited|too many requests"
        r"|http(?: error| status| code|/1\.1)?:? ?[1-5][0-9]{2}|(?:got|received|hit|with|returned|threw"
        r"|returning) an? (?:error )?[45][0-9]{2}(?: error)?|error code:? ?[1-5][0-9]{2}"
        r"|(?:got|hit|was|ran into) an? (?:request |network |connection )?timeout(?: error)?"
        r"|timeout error)\b",
        r"\bconfidence (?:scores?|ratings?|values?)\b|\bconfidence(?: level)?(?: of| is|:| =)? ?"
        r"(?:[01]?\.[0-9]+|[0-9]+ ?(?:%|percent))|\b(?:low|high|medium)-confidence (?:memory|memories"
        r"|record|result)",
        r"\b(?:the|a|this|my) json\b(?= (?:says|shows|contains|has|i|lists|returned|object|payload|data"
        r"|response))",
    ),
}
"""What may as well be about the user's machinery."""
