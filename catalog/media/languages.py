"""Language tags as files carry them: ``en``, ``eng``, ``pt-BR``; ISO 639-1, 639-2 and BCP 47 side by side."""

from __future__ import annotations

import re

_TAG = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*")

_THREE_LETTERS = """
aa:aar ab:abk af:afr ak:aka am:amh ar:ara an:arg as:asm av:ava ae:ave ay:aym az:aze ba:bak bm:bam be:bel
bn:ben bh:bih bi:bis bo:bod,tib bs:bos br:bre bg:bul ca:cat cs:ces,cze ch:cha ce:che cu:chu cv:chv
kw:cor co:cos cr:cre cy:cym,wel da:dan de:deu,ger dv:div dz:dzo el:ell,gre en:eng eo:epo et:est
eu:eus,baq ee:ewe fo:fao fa:fas,per fj:fij fi:fin fr:fra,fre fy:fry ff:ful gd:gla ga:gle gl:glg gv:glv
gn:grn gu:guj ht:hat ha:hau he:heb hz:her hi:hin ho:hmo hr:hrv hu:hun hy:hye,arm ig:ibo io:ido ii:iii
iu:iku ie:ile ia:ina id:ind ik:ipk is:isl,ice it:ita jv:jav ja:jpn kl:kal kn:kan ks:kas ka:kat,geo
kr:kau kk:kaz km:khm ki:kik rw:kin ky:kir kv:kom kg:kon ko:kor kj:kua ku:kur lo:lao la:lat lv:lav li:lim
ln:lin lt:lit lb:ltz lu:lub lg:lug mh:mah ml:mal mr:mar mk:mkd,mac mg:mlg mt:mlt mn:mon mi:mri,mao
ms:msa,may my:mya,bur na:nau nv:nav nr:nbl nd:nde ng:ndo ne:nep nl:nld,dut nn:nno nb:nob no:nor ny:nya
oc:oci oj:oji or:ori om:orm os:oss pa:pan pi:pli pl:pol pt:por ps:pus qu:que rm:roh ro:ron,rum rn:run
ru:rus sg:sag sa:san si:sin sk:slk,slo sl:slv se:sme sm:smo sn:sna sd:snd so:som st:sot es:spa
sq:sqi,alb sc:srd sr:srp ss:ssw su:sun sw:swa sv:swe ty:tah ta:tam tt:tat te:tel tg:tgk tl:tgl th:tha
ti:tir to:ton tn:tsn ts:tso tk:tuk tr:tur tw:twi ug:uig uk:ukr ur:urd uz:uzb ve:ven vi:vie vo:vol wa:wln
wo:wol xh:xho yi:yid yo:yor za:zha zh:zho,chi zu:zul
"""
_TWO_LETTERS = {
    three: two
    for two, threes in (pair.split(":") for pair in _THREE_LETTERS.split())
    for three in threes.split(",")
}
_KNOWN = {*_TWO_LETTERS, *_TWO_LETTERS.values()}


def parse_language(tag: str) -> str | None:
    """The tag in one spelling: ``eng`` as ``en``, ``pt_BR`` as ``pt-br``; None for what is no language."""
    if not _TAG.fullmatch(tag):
        return None
    primary, *rest = tag.lower().replace("_", "-").split("-")
    if primary not in _KNOWN:
        return None
    return "-".join([_TWO_LETTERS.get(primary, primary), *rest])


def language_rank(tag: str | None, preferred: tuple[str, ...]) -> tuple[int, int]:
    """Sort key of a tag by a list of preferred languages, best first.

    A preferred language counts with any region, the same region first; then come unknown languages, then all
    other ones.
    """
    own = parse_language(tag) if tag else None
    if own is None:
        return (len(preferred), 0)
    for place, wish in enumerate(preferred):
        wanted = parse_language(wish) or wish.lower()
        if own == wanted:
            return (place, 0)
        if own.split("-")[0] == wanted.split("-")[0]:
            return (place, 1)
    return (len(preferred), 1)
