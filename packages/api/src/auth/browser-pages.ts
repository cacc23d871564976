// Makes the routes of the board and of the reference pages for browsers, and decides which of their requests may change something.
import { BullpenError } from '@bullpen/contract'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { sendProblem } from '../http/problems/problem.ts'
import { setPageHeaders } from '../http/security-headers.ts'
import { isSameOrigin } from './same-origin.ts'

/** Returns why a request that would change something is refused, or undefined if the request is allowed. */
export type ChangePolicy = (request: FastifyRequest) => string | undefined

/** Refuses every change, even if the plugin that serves the pages has routes that make changes. */
export const readOnly: ChangePolicy = () =>
  'the board is read-only; use the API or the CLI to change tasks, or set BULLPEN_API_ALLOW_BOARD_CHANGES=true'

/** Refuses the changes that pages of other sites cause, in case the browser sends the session with such requests. */
export const onlyOwnPages: ChangePolicy = (request) => {
  if (isSameOrigin(request)) return undefined
  const { origin, host, 'sec-fetch-site': site } = request.headers
  const found = [`Sec-Fetch-Site is ${text(site)}`, `Origin is ${text(origin)}`, `Host is ${text(host)}`].join(', ')
  return `the request does not come from this board's own page: ${found}; expected 'Sec-Fetch-Site: same-origin', or an Origin whose host is the Host or the X-Forwarded-Host; reload the board, or use the API`
}

/**
 * Lets browser sessions use the routes of a scope, and checks every request that is not a GET or HEAD. Call this function before you
 * register the plugin that serves the pages.
 */
export function makePages(scope: FastifyInstance, changes: ChangePolicy): void {
  scope.addHook('onRoute', (route) => {
    route.config = { ...route.config, access: 'browser' }
  })
  scope.addHook('onRequest', (_request, reply, done) => {
    setPageHeaders(reply)
    done()
  })
  scope.addHook('onRequest', (request, reply, done) => {
    const isReading = request.method === 'GET' || request.method === 'HEAD'
    const refusal = isReading ? undefined : changes(request)
    if (refusal === undefined) done()
    else sendProblem(request, reply, new BullpenError('forbidden', refusal))
  })
}

function text(header: string | string[] | undefined): string {
  return header === undefined ? 'missing' : `'${String(header).slice(0, 200)}'`
}
