// Splits a stream of bytes into lines. At most one line is held in memory, and lines that are too long are not.

export interface Line {
  /** The first line is 1. */
  readonly number: number
  /** Undefined if the line has more bytes than allowed. */
  readonly bytes: Uint8Array | undefined
}

const LINE_FEED = 0x0a

/** Yields the lines without their line feeds. The last line need not end with one. */
export async function* splitLines(source: AsyncIterable<Uint8Array | string>, maxBytes: number): AsyncGenerator<Line> {
  let number = 0
  let parts: Uint8Array[] = []
  let length = 0
  const add = (part: Uint8Array): void => {
    length += part.length
    if (length <= maxBytes) parts.push(part)
    else parts = []
  }
  const take = (): Line => {
    const bytes = length <= maxBytes ? Buffer.concat(parts) : undefined
    number += 1
    parts = []
    length = 0
    return { number, bytes }
  }
  for await (const given of source) {
    const chunk = typeof given === 'string' ? Buffer.from(given) : given
    let from = 0
    for (let at = chunk.indexOf(LINE_FEED); at !== -1; at = chunk.indexOf(LINE_FEED, from)) {
      add(chunk.subarray(from, at))
      yield take()
      from = at + 1
    }
    if (from < chunk.length) add(chunk.subarray(from))
  }
  if (length > 0) yield take()
}
