"""Keys and a roster for agents that a bench starts itself."""
import subprocess


def make(program, folder, host, addresses):
    """In `folder`: keys of `host` and of every board in folders of their names, and lab.yaml.
    addresses: by board, tcp://HOST:PORT."""
    def keys(*words):
        return subprocess.run([program, "keys", *words], cwd=folder, check=True, text=True,
                              stdout=subprocess.PIPE).stdout.strip()
    keys("new", "--dir", host)
    trusted = keys("show", "--dir", host)
    lines = ["boards:"]
    for name, address in addresses.items():
        keys("new", "--dir", name)
        keys("trust", "--dir", name, host, trusted)
        public = keys("show", "--dir", name)
        lines.append(f"  - {{name: {name}, address: '{address}', key: {public}}}")
    (folder / "lab.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")
