// File names as text: a name is bytes, JSON carries only those that are UTF-8.
import { isUtf8 } from 'node:buffer'

/** The path as text, or undefined when its bytes are not UTF-8. */
export function pathText(path: Buffer): string | undefined {
  return isUtf8(path) ? path.toString() : undefined
}

/** For messages: what is not printable ASCII as `\xe9`, so that any name can be told from any other. */
export function escapeBytes(path: Buffer): string {
  return path
    .toString('latin1')
    .replace(/[^ -[\]-~]/g, (byte) =>
      byte === '\\' ? '\\\\' : `\\x${byte.charCodeAt(0).toString(16).padStart(2, '0')}`,
    )
}
