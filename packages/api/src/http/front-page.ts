// GET / links to the pages of the API, for a person who opens its address in a browser.
import type { FastifyInstance } from 'fastify'
import { opensPage, sendPage } from './page.ts'
import { routeNotFound } from './problems/error-responses.ts'
import { sendProblem } from './problems/problem.ts'

export function addFrontPage(app: FastifyInstance, { showsBoard }: { readonly showsBoard: boolean }): void {
  const board = showsBoard ? '\n<p><a href="/board/">Board</a>: queues and tasks</p>' : ''
  const content = `<p><a href="/reference">Reference</a>: the routes of this API</p>${board}`
  app.get('/', { config: { access: 'open' } }, async (request, reply) => {
    reply.header('vary', 'Accept')
    if (!opensPage(request)) return sendProblem(request, reply, routeNotFound(request))
    return sendPage(reply, { status: 200, title: 'Bullpen', content })
  })
}
