// GET /problems/{code} returns the page to which the `type` of a problem refers.
import { ERRORS } from '@bullpen/contract/internal'
import type { FastifyInstance } from 'fastify'

export function addProblemPages(app: FastifyInstance): void {
  for (const [code, { status, title }] of Object.entries(ERRORS)) {
    app.get(`/problems/${code}`, { config: { access: 'open' } }, async (_request, reply) =>
      reply.type('text/plain; charset=utf-8').send(`${title}\n\ncode: ${code}\nHTTP status: ${status}\n`),
    )
  }
}
