// Serves the API reference: the document at /openapi.json, and a page at /reference that shows it.
import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'
import { makePages, readOnly } from '../auth/browser-pages.ts'

type Document = Readonly<Record<string, unknown>>

export async function addReference(app: FastifyInstance, document: Document): Promise<void> {
  const text = JSON.stringify(document)
  app.get('/openapi.json', { config: { access: 'browser' } }, async (_request, reply) =>
    reply.type('application/json; charset=utf-8').send(text),
  )
  await app.register(async (scope) => {
    makePages(scope, readOnly)
    await scope.register(swagger, { mode: 'static', specification: { document: JSON.parse(text) } })
    await scope.register(swaggerUi, {
      routePrefix: '/reference',
      theme: { title: 'Bullpen API' },
      // The base layout has no top bar, which would allow users to load documents from other addresses.
      uiConfig: { layout: 'BaseLayout', docExpansion: 'list', defaultModelsExpandDepth: 0 },
    })
  })
}
