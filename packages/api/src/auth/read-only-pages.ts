// What the board and the reference have in common: pages for browsers that show everything and change nothing.
import { BullpenError } from '@bullpen/contract'
import type { FastifyInstance } from 'fastify'
import { sendProblem } from '../http/problems/problem.ts'
import { setPagePolicy } from '../http/security-headers.ts'

/** Restricts a scope to read-only pages. Call it before registering the plugin that serves them. */
export function makeReadOnly(scope: FastifyInstance): void {
  scope.addHook('onRoute', (route) => {
    route.config = { ...route.config, access: 'browser' }
  })
  scope.addHook('onRequest', setPagePolicy)
  // A session permits reading only, whatever the plugin's own routes can do.
  scope.addHook('onRequest', (request, reply, done) => {
    if (request.method === 'GET' || request.method === 'HEAD') return done()
    sendProblem(request, reply, new BullpenError('forbidden', 'the board is read-only; use the API to change tasks'))
  })
}
