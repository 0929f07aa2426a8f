"""What attacks say in other European languages: the commonest phrases, without their accents; see `english_orders`."""

from dataplane.logic.guard.words import Rule

ELSEWHERE: tuple[Rule, ...] = (
    (
        "override",
        0.7,
        r"\b(?:ignor(?:a|e|ez|ier\w{0,4}|ar|are)|olvida|dimentica|oublie[zr]?|vergiss|vergessen sie|negeer"
        r"|esquece)\b[^.!?\n]{0,30}"
        r"\b(?:instruc\w{2,8}|istruzion\w|anweisung\w{0,2}|richtlinie\w|regeln?|reglas|regole|regles|consignes"
        r"|vorgaben|instructies)\b",
    ),
    ("override", 0.7, r"(?:забудь|игнорируй|проигнорируй)\w{0,4}[^.!?\n]{0,30}(?:инструкц|правил|указани)"),
    (
        "leak",
        0.7,
        r"\b(?:rivela\w{0,3}|revela\w{0,2}|revele\w{0,3}|mostra\w{0,2}|muestra\w{0,2}|montre\w{0,2}|zeige?"
        r"|gib)\b[^.!?\n]{0,30}"
        r"\b(?:prompt|instruc\w{2,8}|istruzion\w|systemprompt|interne\w{0,2} daten|parola per parola"
        r"|palabra por palabra|mot pour mot)",
    ),
    (
        "persona",
        0.55,
        r"\b(?:sin|senza|sans|ohne|sem) (?:restricciones|restrizioni|restrictions|einschrankungen|limites|limiti)\b",
    ),
    ("persona", 0.5, r"\b(?:als assistent|come assistente|como asistente|en tant qu'assistant)\b"),
    (
        "persona",
        0.55,
        r"\b(?:sicherheitsrichtlinien|linee guida di sicurezza|normas de seguridad"
        r"|consignes de securite)\b[^.!?\n]{0,40}\b(?:nicht|non|no|ne)\b",
    ),
    ("override", 0.5, r"\b(?:neue anweisungen|nuevas instrucciones|nuove istruzioni|nouvelles instructions)\b"),
    ("exfiltration", 0.6, r"\b(?:envoie|envia|invia|sende|schick|manda)\w{0,4}\b[^.!?\n]{0,50}[\w.+-]{1,40}@"),
    (
        "addressed",
        0.5,
        r"\b(?:deve essere|debe ser|doit etre|muss) [^.!?\n]{0,12}(?:aggiunto|anadid\w|ajoute|angehangt"
        r"|hinzugefugt)\b[^.!?\n]{0,30}"
        r"\b(?:rispost\w|respuesta|reponse|antwort)",
    ),
)
