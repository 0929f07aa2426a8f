"""What Prometheus is told of certificates: how long they last, and whether newer files are refused."""

from collections.abc import Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

from memplane.rpc.certificate_watch import CertificateWatch, Clock

_DAY_US = 86_400_000_000


def tell_of_certificates(registry: CollectorRegistry, watches: Sequence[CertificateWatch], clock: Clock) -> None:
    """Each scrape has the certificates of `watches` from now on."""
    if watches:
        registry.register(_CertificateCollector(watches, clock))


class _CertificateCollector(Collector):
    def __init__(self, watches: Sequence[CertificateWatch], clock: Clock):
        self._watches = watches
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        """The gauges of this moment."""
        days = GaugeMetricFamily(
            "memplane_certificate_days_left", "Days until it ends; below 0: ended.", labels=("purpose", "subject")
        )
        refused = GaugeMetricFamily(
            "memplane_certificate_refused", "1: the newest files are not in use; the log says why.", labels=("purpose",)
        )
        renewed = CounterMetricFamily("memplane_certificate_renewals", "New files taken.", labels=("purpose",))
        left_us: dict[tuple[str, str], int] = {}
        for watch in self._watches:
            refused.add_metric((watch.purpose,), bool(watch.problem))
            renewed.add_metric((watch.purpose,), watch.renewal_count)
            for fact in watch.facts:
                name, left = (fact.purpose, fact.subject), fact.expire_time_us - self._clock.now_us()
                left_us[name] = min(left, left_us.get(name, left))
        for labels, left in left_us.items():
            days.add_metric(labels, left / _DAY_US)
        yield from (days, refused, renewed)
