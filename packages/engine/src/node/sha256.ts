// Implements SHA-256 on Node, for ids and keys that are derived from other ids.
import { createHash } from 'node:crypto'

export function sha256(text: string): Uint8Array {
  return createHash('sha256').update(text).digest()
}
