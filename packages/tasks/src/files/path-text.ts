// Converts file names to text. A name consists of bytes, and JSON can represent it only if the bytes are valid UTF-8.
import { isUtf8 } from 'node:buffer'

/** Returns the path as text, or undefined if its bytes are not valid UTF-8. */
export function pathText(path: Buffer): string | undefined {
  return isUtf8(path) ? path.toString() : undefined
}

/** Formats a path for messages. Bytes that are not printable ASCII become `\xe9` and the like, so that names stay distinct. */
export function escapeBytes(path: Buffer): string {
  return path
    .toString('latin1')
    .replace(/[^ -[\]-~]/g, (byte) =>
      byte === '\\' ? '\\\\' : `\\x${byte.charCodeAt(0).toString(16).padStart(2, '0')}`,
    )
}
