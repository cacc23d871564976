// Restricts the board and the reference to read-only pages for browsers.
import { BullpenError } from '@bullpen/contract'
import type { FastifyInstance } from 'fastify'
import { sendProblem } from '../http/problems/problem.ts'
import { setPagePolicy } from '../http/security-headers.ts'

/** Restricts a scope to read-only pages. Call this function before you register the plugin that serves the pages. */
export function makeReadOnly(scope: FastifyInstance): void {
  scope.addHook('onRoute', (route) => {
    route.config = { ...route.config, access: 'browser' }
  })
  scope.addHook('onRequest', setPagePolicy)
  // A session permits only reading, even if the plugin has routes that make changes.
  scope.addHook('onRequest', (request, reply, done) => {
    if (request.method === 'GET' || request.method === 'HEAD') return done()
    sendProblem(request, reply, new BullpenError('forbidden', 'the board is read-only; use the API to change tasks'))
  })
}
