// What the board and the reference have in common: pages for browsers that show everything and change nothing.
import { BullpenError } from '@bullpen/contract'
import type { FastifyInstance } from 'fastify'
import { sendProblem } from './problems.ts'
import { setPagePolicy } from './security-headers.ts'

/** Prepares a scope of its own for pages; register it before the plugin that brings them. */
export function preparePages(scope: FastifyInstance): void {
  scope.addHook('onRoute', (route) => {
    route.config = { ...route.config, access: 'browser' }
  })
  scope.addHook('onRequest', setPagePolicy)
  // A session opens looking alone, whatever the plugin's own routes can do.
  scope.addHook('onRequest', (request, reply, done) => {
    if (request.method === 'GET' || request.method === 'HEAD') return done()
    sendProblem(request, reply, new BullpenError('forbidden', 'the board is read-only: change tasks through the API'))
  })
}
