// Reads JSON bodies, and rejects content that could cause harm later: invalid text, `__proto__` keys, deep nesting and infinite
// numbers.
import { isUtf8 } from 'node:buffer'
import { BullpenError } from '@bullpen/contract'
import { prototypeKeyError, prototypeKeyOf } from '@bullpen/contract/internal'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'

/** JSON.parse accepts any depth, but writing and validating are recursive, and 30,000 levels overflow the stack. */
const MAX_DEPTH = 100
/** Parsers may ignore this character (RFC 8259, section 8.1), which some programs write at the start of UTF-8 files. */
const BYTE_ORDER_MARK = '\u{feff}'

/** Rejects text and forms, because a page on another site could post them without a preflight request. */
export function acceptOnlyJson(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body: Buffer, done) => {
    try {
      refuseEncodings(request)
      done(null, body.length === 0 && mayBeAbsent(request) ? undefined : parseJsonBody(body))
    } catch (error) {
      done(error as Error)
    }
  })
  app.addContentTypeParser('*', ({ headers }, _payload, done) => {
    if (isCompressed(headers)) return done(compressed())
    const type = headers['content-type']
    const found = type === undefined ? 'the request has a body without a Content-Type' : `the Content-Type is '${type}'`
    done(new BullpenError('unsupported_media_type', `${found}; expected a body with Content-Type: application/json`))
  })
}

/** Returns whether the body has a content coding. */
export function isCompressed({ 'content-encoding': coding = '' }: FastifyRequest['headers']): boolean {
  return !['', 'identity'].includes(coding.trim().toLowerCase())
}

function compressed(): BullpenError {
  const detail = 'the body has a Content-Encoding; send the body uncompressed and without that header'
  return new BullpenError('unsupported_media_type', detail)
}

/** ASCII is a part of UTF-8. */
const CHARSETS = ['utf-8', 'utf8', 'us-ascii']

function refuseEncodings({ headers }: FastifyRequest): void {
  if (isCompressed(headers)) throw compressed()
  const charset = /;\s*charset="?([^";\s]*)/i.exec(headers['content-type'] ?? '')?.[1]
  if (charset === undefined || CHARSETS.includes(charset.toLowerCase())) return
  throw new BullpenError('unsupported_media_type', `the charset of the body is '${charset}'; expected UTF-8`)
}

/** Many clients send the header Content-Type with every request, even if it has no body. */
function mayBeAbsent({ routeOptions }: FastifyRequest): boolean {
  const schema: unknown = routeOptions.schema?.body
  return schema === undefined || (schema instanceof z.ZodType && schema.safeParse(undefined).success)
}

/** @throws BullpenError `malformed_json` or `invalid_request`. */
function parseJsonBody(body: Buffer): unknown {
  if (body.length === 0) throw new BullpenError('malformed_json', 'the body is empty; expected a JSON object')
  if (!isUtf8(body)) throw new BullpenError('malformed_json', 'the body is not valid UTF-8')
  const text = body.toString()
  const value = parse(text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text)
  refuseHarmful(value)
  return value
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new BullpenError('malformed_json', `the body is not valid JSON: ${reasonOf(cause)}`, { cause })
  }
}

/** Returns Node's message, which contains either the position or the text around it. */
function reasonOf(cause: unknown): string {
  return (cause as SyntaxError).message.replace(/ is not valid JSON$/, '')
}

/**
 * Rejects harmful content. `path` is that of the value. The recursion ends at {@link MAX_DEPTH}, so a deeply nested body cannot overflow
 * the call stack.
 */
function refuseHarmful(value: unknown, path: string[] = []): void {
  if (value === Number.POSITIVE_INFINITY || value === Number.NEGATIVE_INFINITY) {
    throw new BullpenError('invalid_request', 'the body contains a number that is too large for a double')
  }
  if (typeof value !== 'object' || value === null) return
  if (path.length === MAX_DEPTH) {
    throw new BullpenError('invalid_request', `the body is nested too deeply; at most ${MAX_DEPTH} levels are accepted`)
  }
  const found = prototypeKeyOf(value)
  if (found !== undefined) throw prototypeKeyError([...path, ...found])
  // In a value that JSON.parse has returned, every property is an own property.
  for (const key in value) {
    path.push(key)
    refuseHarmful((value as Readonly<Record<string, unknown>>)[key], path)
    path.pop()
  }
}
