from dataplane.logic.overlap import identifiers_held, word_overlap


def test_the_overlap_is_the_share_of_the_tokens_that_the_text_holds() -> None:
    assert word_overlap({"cat", "dog"}, "the cats sleep") == 0.5
    assert word_overlap({"dog"}, "the cats sleep") == 0.0
    assert word_overlap(frozenset(), "the cats sleep") == 0.0


def test_an_identifier_is_held_as_a_whole_only() -> None:
    asked = {"inv-2024/0031", "sn00000007", "13651039007"}
    assert identifiers_held(asked, "INV-2024/0031 came with SN00000007") == 2
    assert identifiers_held(asked, "电话13651039007") == 1
    assert identifiers_held(asked, "INV-2024/00310, SN000000071, 136510390071") == 0
    assert identifiers_held(asked, "ＩＮＶ－２０２４／００３１") == 1
    assert identifiers_held(frozenset(), "INV-2024/0031") == 0
