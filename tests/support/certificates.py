"""Makes certificate authorities and certificates for a test with the openssl program. Contains no assertions about the programs under test."""
import subprocess
from pathlib import Path


class Authority:
    """A certificate authority below `home`: ca.crt, and the certificates that it signs."""

    def __init__(self, home: Path, name: str = "test authority"):
        self.home = home
        home.mkdir(parents=True, exist_ok=True)
        self.certificate, self.key = home / "ca.crt", home / "ca.key"
        self._openssl("req", "-x509", *self._fresh(self.key), "-out", self.certificate, "-days", "30", "-subj", f"/CN={name}")

    @staticmethod
    def _openssl(*words):
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)

    @staticmethod
    def _fresh(key: Path) -> list:
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key]

    def sign(self, name: str, san: str, usage: str, days: int = 30) -> tuple[Path, Path]:
        """Makes the certificate NAME.crt and the key NAME.key; `usage` is serverAuth or clientAuth."""
        certificate, key, request, extensions = (self.home / f"{name}.{end}" for end in ("crt", "key", "csr", "ext"))
        self._openssl("req", "-new", *self._fresh(key), "-out", request, "-subj", f"/CN={name}")
        extensions.write_text(f"subjectAltName={san}\nextendedKeyUsage={usage}\n")
        self._openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key, "-CAcreateserial", "-days", days,
                      "-extfile", extensions, "-out", certificate)
        return certificate, key

    def server(self, name: str = "server") -> tuple[Path, Path]:
        return self.sign(name, "DNS:localhost,IP:127.0.0.1,IP:::1", "serverAuth")

    def client(self, name: str, san: str = "DNS:client.example") -> tuple[Path, Path]:
        return self.sign(name, san, "clientAuth")
