// Stands in for a mail provider. It accepts receipts, and fails for addresses that begin with "fail".
import { createServer } from 'node:http'

/**
 * Starts the stub. POST /receipts responds with 202, or with 503 if `to` in the JSON body begins with `fail`.
 * @param {{ port: number, host?: string }} options
 */
export async function startMailStub({ port, host = '127.0.0.1' }) {
  const server = createServer(async (request, response) => {
    const answer = (status, body) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    }
    if (request.method !== 'POST' || request.url !== '/receipts') return answer(404, { error: 'POST /receipts' })
    try {
      const chunks = await Array.fromAsync(request)
      const { to } = JSON.parse(Buffer.concat(chunks).toString('utf8'))
      if (String(to).startsWith('fail')) return answer(503, { error: 'this address always fails' })
      answer(202, { accepted: true })
    } catch {
      answer(400, { error: 'expected a JSON body such as {"to":"ann@example.com"}' })
    }
  })
  await new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  return {
    url: `http://${host}:${server.address().port}/receipts`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
