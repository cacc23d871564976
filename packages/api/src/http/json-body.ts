// Reads a JSON body and refuses what would hurt later: broken text, `__proto__` keys, endless nesting, infinite numbers.
import { isUtf8 } from 'node:buffer'
import { BullpenError } from '@bullpen/contract'
import type { FastifyInstance } from 'fastify'

/** JSON.parse takes any depth, but writing and checking recurse: 30,000 levels overflow the stack. */
const DEEPEST = 100

/** Text and forms are not taken: a form of another site could send them without asking. */
export function acceptJsonAlone(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body: Buffer, done) => {
    try {
      const encoding = request.headers['content-encoding'] ?? 'identity'
      if (encoding !== 'identity') {
        throw new BullpenError('unsupported_media_type', `the body is encoded as ${encoding}; send it as it is`)
      }
      done(null, parseJsonBody(body))
    } catch (error) {
      done(error as Error)
    }
  })
}

/** @throws BullpenError `malformed_json` or `invalid_request`. */
function parseJsonBody(body: Buffer): unknown {
  if (body.length === 0) throw new BullpenError('malformed_json', 'the body is empty; a JSON object is expected')
  if (!isUtf8(body)) throw new BullpenError('malformed_json', 'the body is not UTF-8')
  const value = parse(body.toString())
  refuseHarmful(value)
  return value
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new BullpenError('malformed_json', `the body is not JSON: ${(cause as SyntaxError).message}`, { cause })
  }
}

/** A loop with a stack of its own, so that depth can't overflow it. */
function refuseHarmful(root: unknown): void {
  const left: { value: unknown; depth: number }[] = [{ value: root, depth: 0 }]
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { value, depth } = next
    if (value === Number.POSITIVE_INFINITY || value === Number.NEGATIVE_INFINITY) {
      throw new BullpenError('invalid_request', 'the body holds a number that is too large for a double')
    }
    if (typeof value !== 'object' || value === null) continue
    if (depth === DEEPEST) {
      throw new BullpenError('invalid_request', `the body is nested more than ${DEEPEST} levels deep`)
    }
    if (poisonsPrototypes(value)) {
      throw new BullpenError('invalid_request', "the body holds a '__proto__' or 'constructor.prototype' key")
    }
    for (const child of Object.values(value)) left.push({ value: child, depth: depth + 1 })
  }
}

/** JSON.parse makes them own keys, but a careless copy or merge further on would write to prototypes with them. */
function poisonsPrototypes(value: object): boolean {
  if (Object.hasOwn(value, '__proto__')) return true
  const inner: unknown = Object.getOwnPropertyDescriptor(value, 'constructor')?.value
  return typeof inner === 'object' && inner !== null && Object.hasOwn(inner, 'prototype')
}
