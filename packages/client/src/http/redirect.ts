// Refuses redirects, because following one may turn a POST into a GET, or drop or disclose the API key.
import { ProblemError } from '@bullpen/contract/internal'
import type { HttpResponse } from './send.ts'

/** @throws ProblemError if the response to the request to `url` is a redirect, or if `fetch` has followed one. */
export function refuseRedirect(
  response: Pick<HttpResponse, 'status' | 'headers' | 'type' | 'redirected' | 'url'>,
  url: URL,
  method: string,
): void {
  const { status, headers, type, redirected } = response
  const to = redirected ? (response.url ?? null) : headers.get('location')
  // Browsers do not show a redirect's status and location.
  const isRedirect = type === 'opaqueredirect' || redirected || (status >= 300 && status < 400 && to !== null)
  if (!isRedirect) return
  const target = to !== null && URL.canParse(to, url.href) ? new URL(to, url) : undefined
  const found = redirected || type === 'opaqueredirect' ? 'a redirect' : `HTTP ${status}, which redirects`
  const detail = `${method} ${shown(url)}: the response is ${found} to ${target === undefined ? 'another address' : shown(target)}; the client does not follow redirects; ${adviceFor(url, target)}`
  throw new ProblemError({ code: 'unexpected_response', outcome: 'refused', ...(status > 0 && { status }), detail })
}

/** Returns the address without what may be secret: its user name, password, query and fragment. */
const shown = ({ origin, pathname }: URL): string => `${origin}${pathname}`

function adviceFor({ pathname }: URL, target: URL | undefined): string {
  const route = pathname.slice(pathname.lastIndexOf('/v1/'))
  return target?.pathname.endsWith(route)
    ? `if that is the API, set its address to ${shown(target).slice(0, -route.length)}`
    : "set the API's address to one that responds without a redirect, and check any proxy in front of it"
}
