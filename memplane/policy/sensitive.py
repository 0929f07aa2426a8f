"""What is done with sensitive data: `sensitive_policy`, one action for each type that detectors know."""

from typing import Literal

from pydantic import Field

from memplane.policy.names import Unit
from memplane.policy.section import Section

SensitiveAction = Literal["mask", "reject", "review", "allow"]
"""`mask` stores a form of it, `reject` refuses the write, `review` masks and holds it back, `allow` leaves it."""


class SensitiveActions(Section):
    """The action for each type. What is worth money or opens doors is masked; what is public is left."""

    ID_CARD_CN: SensitiveAction = "mask"
    PASSPORT_CN: SensitiveAction = "mask"
    PASSPORT: SensitiveAction = "mask"
    PLATE_CN: SensitiveAction = "mask"
    USCC_CN: SensitiveAction = "allow"
    US_SSN: SensitiveAction = "mask"
    US_ITIN: SensitiveAction = "mask"
    US_DRIVER_LICENSE: SensitiveAction = "mask"
    UK_NHS: SensitiveAction = "mask"
    PHONE_CN: SensitiveAction = "mask"
    PHONE_US: SensitiveAction = "mask"
    PHONE: SensitiveAction = "mask"
    EMAIL: SensitiveAction = "mask"
    WECHAT: SensitiveAction = "mask"
    QQ: SensitiveAction = "mask"
    BANK_CARD: SensitiveAction = "mask"
    CREDIT_CARD: SensitiveAction = "mask"
    IBAN: SensitiveAction = "mask"
    BANK_ACCOUNT: SensitiveAction = "mask"
    CRYPTO_WALLET: SensitiveAction = "mask"
    IP: SensitiveAction = "mask"
    MAC_ADDRESS: SensitiveAction = "mask"
    API_KEY: SensitiveAction = "mask"
    PRIVATE_KEY: SensitiveAction = "mask"
    PASSWORD: SensitiveAction = "mask"  # noqa: S105 - what is done with one
    URL: SensitiveAction = "allow"
    ADDRESS: SensitiveAction = "allow"
    ZIP_CODE: SensitiveAction = "allow"
    DATE_OF_BIRTH: SensitiveAction = "allow"


class SensitivePolicy(Section):
    """Whether writes are looked through for sensitive data, and what is done with what is found."""

    enabled: bool = True
    statements: Literal["allow", "review"] = "allow"
    statements_threshold: Unit = 0.8
    actions: SensitiveActions = Field(default_factory=SensitiveActions)
