// Makes digests of texts, from which ids and keys are derived.

/** The platform's SHA-256. */
export type Sha256 = (text: string) => Uint8Array

/** Returns a digest of these parts. Each is prefixed with its length, so that different parts never produce the same text. */
export function digestOf(parts: readonly string[], sha256: Sha256): Uint8Array {
  return sha256(parts.map((part) => `${part.length}:${part}`).join(''))
}

export function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
