// File names as text. A name is bytes, and JSON can carry only names that are UTF-8.
import { isUtf8 } from 'node:buffer'

/** The path as text; undefined if its bytes are not UTF-8. */
export function pathText(path: Buffer): string | undefined {
  return isUtf8(path) ? path.toString() : undefined
}

/** For messages: bytes that are not printable ASCII become `\xe9`, so that different names stay different. */
export function escapeBytes(path: Buffer): string {
  return path
    .toString('latin1')
    .replace(/[^ -[\]-~]/g, (byte) =>
      byte === '\\' ? '\\\\' : `\\x${byte.charCodeAt(0).toString(16).padStart(2, '0')}`,
    )
}
