import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { definePipeline, type StageContext, streamPipeline } from '@bullpen/pipeline'

interface Page {
  readonly url: string
  readonly depth: number
}

/** The pages to visit, each of them once, and none that is further than `maxDepth` links away from the first one. */
function createFrontier(first: string, maxDepth: number) {
  const found = new Set([first])
  const waiting: Page[] = [{ url: first, depth: 0 }]
  let unfinished = 1
  let changed = Promise.withResolvers<void>()
  return {
    /** Ends when no page waits and none is being visited, because only a visit can find further pages. */
    async *pages({ signal }: { readonly signal: AbortSignal }) {
      signal.addEventListener('abort', () => changed.resolve())
      while (unfinished > 0 && !signal.aborted) {
        const page = waiting.shift()
        if (page === undefined) {
          changed = Promise.withResolvers()
          await changed.promise
        } else yield page
      }
    },
    visited({ depth }: Page, links: readonly string[]): void {
      for (const url of depth < maxDepth ? links : []) {
        if (found.has(url)) continue
        found.add(url)
        waiting.push({ url, depth: depth + 1 })
        unfinished++
      }
      unfinished--
      changed.resolve()
    },
  }
}

/** Yields up to `maxPages` pages of one site, as soon as each was visited. At most four requests are open at a time. */
function crawl(first: string, { maxDepth, maxPages }: { readonly maxDepth: number; readonly maxPages: number }) {
  const frontier = createFrontier(first, maxDepth)
  const visit = async (page: Page, { signal }: StageContext) => {
    let links: string[] = []
    try {
      const response = await fetch(page.url, { signal })
      const text = await response.text()
      links = [...text.matchAll(/href="([^"]+)"/g)]
        .map(([, href = '']) => new URL(href, page.url))
        .filter(({ origin }) => origin === new URL(first).origin)
        .map(({ href }) => href)
      return { ...page, status: response.status }
    } finally {
      frontier.visited(page, links)
    }
  }
  return streamPipeline(
    definePipeline('crawl', { ordered: false })
      .source((_: undefined, context) => frontier.pages(context))
      .map(visit, { concurrency: 4 })
      .take(maxPages),
  )
}

// A site of which page /n links to /2n, to /2n+1, back to /1, and to a page that does not exist.
let [open, most, requests] = [0, 0, 0]
const site = createServer((request, response) => {
  requests++
  most = Math.max(most, ++open)
  const n = Number(request.url?.slice(1))
  setTimeout(() => {
    open--
    response.statusCode = n > 0 ? 200 : 404
    response.end(n > 0 ? [2 * n, 2 * n + 1, 1, 'missing'].map((link) => `<a href="/${link}">`).join('\n') : '')
  }, 20)
})
await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve))
const first = `http://127.0.0.1:${(site.address() as AddressInfo).port}/1`

const statuses: number[] = []
for await (const { status } of crawl(first, { maxDepth: 3, maxPages: 100 })) statuses.push(status)
console.log(`depth 3: ${statuses.length} pages, ${statuses.filter((status) => status === 404).length} of them missing`)
console.log(`each page was requested once: ${requests === statuses.length}; at most four at a time: ${most <= 4}`)

let pages = 0
for await (const _ of crawl(first, { maxDepth: 100, maxPages: 10 })) pages++
console.log(`page limit: ${pages} pages`)

site.close()
site.closeAllConnections()
