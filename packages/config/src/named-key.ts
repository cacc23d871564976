// Reads an API key of the settings, in front of which there may be a name and a colon.
import { hash } from 'node:crypto'

export interface NamedKey {
  /** The name in front of the key. If there is none, this is the key's fingerprint. */
  readonly name: string
  readonly text: string
  /** The first 8 hex digits of the key's SHA-256, which distinguish keys without revealing anything about them. */
  readonly fingerprint: string
}

/** Reads `KEY` or `NAME:KEY`. A key cannot contain a colon, so a colon ends the name. */
export function readNamedKey(entry: string): NamedKey {
  const colon = entry.indexOf(':')
  const text = entry.slice(colon + 1)
  const fingerprint = hash('sha256', text).slice(0, 8)
  return { name: colon === -1 ? fingerprint : entry.slice(0, colon), text, fingerprint }
}
