// Reads JSON, and checks it for values that JSON.stringify could not write, or would silently change.

/** More levels than the API accepts. Some thousands of levels would overflow the stack of JSON.stringify. */
const MAX_DEPTH = 1_000

/**
 * Returns why a parsed value cannot be sent, such as `contains a number …`, or undefined if it can. The loop has its own stack, so
 * that deep nesting cannot overflow the call stack.
 */
export function unsendable(root: unknown): string | undefined {
  const pending: { value: unknown; depth: number }[] = [{ value: root, depth: 0 }]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { value, depth } = next
    // JSON.parse reads 1e999 as Infinity, which JSON.stringify writes as null.
    if (value === Number.POSITIVE_INFINITY || value === Number.NEGATIVE_INFINITY) {
      return 'contains a number that is too large for a double'
    }
    if (typeof value !== 'object' || value === null) continue
    if (depth === MAX_DEPTH) return `contains more than ${MAX_DEPTH.toLocaleString('en')} levels of nesting`
    for (const child of Object.values(value)) pending.push({ value: child, depth: depth + 1 })
  }
  return undefined
}

/** Parses JSON, or says why the text is not JSON. */
export function readJson(text: string): { readonly value: unknown } | { readonly problem: string } {
  try {
    return { value: JSON.parse(text) as unknown }
  } catch (error) {
    // Node's message contains either the position or the text around it.
    return { problem: (error as SyntaxError).message.replace(/ is not valid JSON$/, '') }
  }
}

/** Returns undefined if the bytes are not UTF-8. A byte order mark at the beginning is ignored. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}
