// Parses server-sent events (the HTML standard's text/event-stream) as they arrive.

export interface ServerSentEvent {
  /** The id of this event, if it has one. */
  readonly id: string | undefined
  /** Undefined if there is only an id, which is then the position of the reader, or neither, such as in a heartbeat. */
  readonly data: string | undefined
  /** How long the reader should wait before it connects again, in ms, if the server has said so with or before this event. */
  readonly retryMs: number | undefined
}

/**
 * Yields each block of lines, also one that has neither data nor an id, because it shows that the server still responds. Lines may end
 * with a line feed, a carriage return, or both.
 */
export async function* serverSentEvents(
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<ServerSentEvent, void, void> {
  const decoder = new TextDecoder()
  let rest = ''
  let id: string | undefined
  let retryMs: number | undefined
  let data: string[] = []
  let isEmpty = true
  for await (const chunk of chunks) {
    rest += decoder.decode(chunk, { stream: true })
    const lines = rest.split(/\r\n|\n|\r(?!$)/)
    rest = lines.pop() ?? ''
    for (const line of lines) {
      if (line === '') {
        if (!isEmpty) yield { id, data: data.length === 0 ? undefined : data.join('\n'), retryMs }
        id = undefined
        data = []
        isEmpty = true
        continue
      }
      isEmpty = false
      const colon = line.indexOf(':')
      // A line that begins with a colon is a comment.
      if (colon === 0) continue
      const field = colon === -1 ? line : line.slice(0, colon)
      const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '')
      if (field === 'data') data.push(value)
      else if (field === 'id') id = value
      else if (field === 'retry' && /^\d+$/.test(value)) retryMs = Number(value)
    }
  }
}
