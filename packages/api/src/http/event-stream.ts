// Writes server-sent events (the HTML standard's text/event-stream) to a response for as long as the reader stays.
//
// An event is produced only when the response has room for it, so a slow reader takes no more memory than the response's buffer.
// A reader that does not read for some time is disconnected. It can resume with the id of the last event that it received.
import type { ServerResponse } from 'node:http'
import type { DisconnectReason, Log } from '@bullpen/contract'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { OpenStreams, StreamSubject } from './open-streams.ts'

/** How often a comment is sent, in ms, so that neither the reader nor a proxy takes a quiet connection for a dead one. */
const HEARTBEAT_MS = 15_000
/** How long a reader may leave the response's buffer full, in ms. */
const SLOW_READER_MS = 15_000
/** How long a disconnected reader has to read what is left, in ms. */
const LINGER_MS = 5_000
/** How long a reader should wait before it resumes, in ms. After a shutdown, it waits for up to three times as long. */
const RETRY_MS = 1_000

export interface EventStreamOptions {
  readonly log: Log
  /** Aborts when the API starts to drain. All streams then end. */
  readonly closing: AbortSignal
  readonly streams: OpenStreams
  /** Returns a number from 0 to 1. */
  readonly random?: () => number
  /** Tests set the times. */
  readonly heartbeatMs?: number | undefined
  readonly slowReaderMs?: number | undefined
}

/**
 * One event: its id, its type, and its data as JSON. A frame that has only an id is no event, but the reader resumes after that id.
 */
export type Frame =
  | { readonly id: string; readonly type: string; readonly data: string }
  | { readonly id: string; readonly type?: undefined }

export interface EventStreams {
  /**
   * Opens a stream and writes its events, until the stream ends, the reader disconnects or the API closes. If `open` rejects, no
   * response has been sent yet, and this function rejects as well.
   */
  send(
    subject: StreamSubject,
    request: FastifyRequest,
    reply: FastifyReply,
    open: (signal: AbortSignal) => Promise<AsyncIterable<Frame>>,
  ): Promise<FastifyReply>
}

export function createEventStreams(options: EventStreamOptions): EventStreams {
  const { log, closing, streams, random = Math.random } = options
  const { heartbeatMs = HEARTBEAT_MS, slowReaderMs = SLOW_READER_MS } = options
  const open = new Set<ServerResponse>()
  let heartbeat: NodeJS.Timeout | undefined

  const add = (response: ServerResponse): void => {
    open.add(response)
    heartbeat ??= setInterval(() => {
      for (const each of open) if (!each.writableNeedDrain) each.write(': heartbeat\n\n')
    }, heartbeatMs).unref()
  }
  const remove = (response: ServerResponse): void => {
    open.delete(response)
    if (open.size > 0) return
    clearInterval(heartbeat)
    heartbeat = undefined
  }

  /** Writes the frames. Returns why the stream ended early, if it did. */
  const write = async (
    response: ServerResponse,
    frames: AsyncIterable<Frame>,
    signal: AbortSignal,
  ): Promise<DisconnectReason | undefined> => {
    try {
      for await (const frame of frames) {
        if (signal.aborted) break
        const hasRoom = response.write(textOf(frame))
        if (!hasRoom && !(await drained(response, slowReaderMs))) {
          log.info({ afterMs: slowReaderMs }, 'slow reader of events disconnected')
          return 'slow_reader'
        }
      }
      return closing.aborted ? 'shutting_down' : undefined
    } catch (err) {
      log.warn({ err }, 'event stream ended because its events could not be read')
      return 'unavailable'
    }
  }

  return {
    async send(subject, request, reply, openFrames) {
      if (request.method === 'HEAD') return reply.header('content-type', EVENT_STREAM).send()
      const response = reply.raw
      const controller = new AbortController()
      const abort = (): void => controller.abort()
      response.once('close', abort)
      closing.addEventListener('abort', abort)
      let leave = (): void => {}
      try {
        const frames = await openFrames(controller.signal)
        leave = streams.add(subject)
        reply.hijack()
        response.writeHead(200, {
          ...(reply.getHeaders() as NodeJS.Dict<string>),
          'content-type': EVENT_STREAM,
          'cache-control': 'no-store',
          // Without this header, nginx would hold back the events.
          'x-accel-buffering': 'no',
        })
        response.write(`retry: ${RETRY_MS}\n\n`)
        add(response)
        const reason = await write(response, frames, controller.signal)
        end(response, reason, reason === 'shutting_down' ? Math.round(RETRY_MS * (1 + 2 * random())) : RETRY_MS)
        return reply
      } finally {
        leave()
        remove(response)
        closing.removeEventListener('abort', abort)
      }
    },
  }
}

function textOf(frame: Frame): string {
  if (frame.type === undefined) return `id: ${frame.id}\n\n`
  return `id: ${frame.id}\nevent: ${frame.type}\ndata: ${frame.data}\n\n`
}

const EVENT_STREAM = 'text/event-stream; charset=utf-8'

/** Resolves to false if the response's buffer is still full after `ms`. */
function drained(response: ServerResponse, ms: number): Promise<boolean> {
  return new Promise((resolve) => {
    const settle = (isDrained: boolean): void => {
      clearTimeout(timer)
      response.off('drain', onDrain)
      response.off('close', onDrain)
      resolve(isDrained)
    }
    const onDrain = (): void => settle(true)
    const timer = setTimeout(() => settle(false), ms)
    response.once('drain', onDrain)
    response.once('close', onDrain)
    if (response.destroyed) onDrain()
  })
}

function end(response: ServerResponse, reason: DisconnectReason | undefined, retryMs: number): void {
  if (response.destroyed) return
  if (reason !== undefined) {
    const data = JSON.stringify({ type: 'disconnected', reason })
    response.write(`retry: ${retryMs}\nevent: disconnected\ndata: ${data}\n\n`)
  }
  response.end()
  const timer = setTimeout(() => response.destroy(), LINGER_MS).unref()
  response.once('close', () => clearTimeout(timer))
}
