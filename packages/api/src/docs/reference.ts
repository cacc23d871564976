// Serves the API reference: the document at /openapi.json, and a page at /reference that shows it.
import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'
import { makePages, readOnly } from '../auth/browser-pages.ts'

type Document = Readonly<Record<string, unknown>>

/** Calls `build` when the document is first requested: most API processes are never asked for it, and would start later. */
export async function addReference(app: FastifyInstance, build: () => Document): Promise<void> {
  let built: Document | undefined
  const document = (): Document => {
    built ??= build()
    return built
  }
  app.get('/openapi.json', { config: { access: 'browser' } }, async (_request, reply) =>
    reply.type('application/json; charset=utf-8').send(JSON.stringify(document())),
  )
  await app.register(async (scope) => {
    makePages(scope, readOnly)
    // The plugin keeps this object and writes it as JSON or YAML for each request.
    const specification = { document: { toJSON: document } as never }
    await scope.register(swagger, { mode: 'static', specification })
    await scope.register(swaggerUi, {
      routePrefix: '/reference',
      theme: { title: 'Bullpen API' },
      // The base layout has no top bar, which would allow users to load documents from other addresses.
      uiConfig: { layout: 'BaseLayout', docExpansion: 'list', defaultModelsExpandDepth: 0 },
    })
  })
}
