// Serves a page that runs a script in a browser. The modules of the page are this repository's sources.
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { stripTypeScriptTypes } from 'node:module'
import type { AddressInfo } from 'node:net'
import { join, normalize } from 'node:path'
import { json } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'

const root = join(import.meta.dirname, '../../..')

const IMPORTS = {
  '@bullpen/client': '/packages/client/src/index.ts',
  '@bullpen/contract': '/packages/contract/src/index.ts',
  '@bullpen/contract/internal': '/packages/contract/src/internal.ts',
  croner: '/node_modules/croner/dist/croner.js',
  zod: '/node_modules/zod/index.js',
}

export interface ScriptPage {
  /** Such as `http://127.0.0.1:40123`. */
  readonly origin: string
  /** Resolves to what the script's default export returns or, if it throws, to `{ thrown }`, after the page has been opened. */
  readonly reported: Promise<unknown>
}

/** Serves a page that runs `script`, a module whose default export is a function. */
export async function servePage(script: () => string): Promise<ScriptPage> {
  const reported = Promise.withResolvers<unknown>()
  const server = createServer(async (request, response) => {
    const path = normalize(request.url ?? '/')
    if (request.method === 'POST') reported.resolve(await json(request))
    const file = join(root, path)
    const text = path === '/' ? PAGE : path === '/script.js' ? script() : existsSync(file) ? source(file) : ''
    response.writeHead(200, { 'content-type': path === '/' ? 'text/html' : 'text/javascript' }).end(text)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return { origin, reported: reported.promise }
}

const PAGE = `<!doctype html>
<script type="importmap">${JSON.stringify({ imports: IMPORTS })}</script>
<script type="module">
import script from '/script.js'
const result = await script().catch((error) => ({ thrown: { ...error, name: error.name, message: error.message } }))
await fetch('/', { method: 'POST', body: JSON.stringify(result) })
</script>`

function source(file: string): string {
  const text = readFileSync(file, 'utf8')
  return file.endsWith('.ts') ? stripTypeScriptTypes(text) : text
}
