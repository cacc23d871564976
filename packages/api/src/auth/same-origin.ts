// Decides whether a browser's request comes from one of the API's own pages. Requests that another site has caused are refused.
import type { FastifyRequest } from 'fastify'
import { forwardedProtocol, possibleHosts } from './forwarded.ts'

/**
 * Returns whether the request comes from a page of the same origin. Browsers say so in `Sec-Fetch-Site`, which no script can set and
 * no proxy changes. Over plain http, browsers send only `Origin`, whose host must then be the one under which the request was sent.
 * A request with neither header does not come from a browser's page.
 */
export function isSameOrigin(request: Pick<FastifyRequest, 'headers'>): boolean {
  const { origin, 'sec-fetch-site': site } = request.headers
  if (site !== undefined) return site === 'same-origin'
  if (origin === undefined || !URL.canParse(origin)) return false
  const { protocol, host } = new URL(origin)
  const forwarded = forwardedProtocol(request)
  if (forwarded !== undefined && protocol !== `${forwarded}:`) return false
  // The host of a URL does not contain the protocol's default port, which the header may contain.
  return possibleHosts(request).some((each) => URL.parse(`${protocol}//${each}`)?.host === host)
}
