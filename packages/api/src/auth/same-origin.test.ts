// Tests which requests count as coming from the API's own pages.
import { describe, expect, test } from 'vitest'
import { cameOverHttps } from './forwarded.ts'
import { isSameOrigin } from './same-origin.ts'

const HOST = 'board.example.com'
const OWN = `https://${HOST}`
const INTERNAL = 'api.internal:8080'

describe('a request', () => {
  test.each<[string, Readonly<Record<string, string>>, boolean]>([
    ['of a page of the same origin', { host: HOST, 'sec-fetch-site': 'same-origin', origin: OWN }, true],
    ['behind a proxy that changes the host', { host: INTERNAL, 'sec-fetch-site': 'same-origin', origin: OWN }, true],
    ['of another site', { host: HOST, 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }, false],
    ['of a neighbour of the same site', { host: HOST, 'sec-fetch-site': 'same-site', origin: OWN }, false],
    ['that the user has typed', { host: HOST, 'sec-fetch-site': 'none' }, false],
    ['of an old browser', { host: HOST, origin: OWN }, true],
    ['of an old browser, on another port', { host: `${HOST}:8443`, origin: OWN }, false],
    ['of an old browser, with the default port in the header', { host: `${HOST}:443`, origin: OWN }, true],
    ['of another site in an old browser', { host: HOST, origin: 'https://evil.example' }, false],
    ['of a page without an origin', { host: HOST, origin: 'null' }, false],
    ['with an origin that is not a URL', { host: HOST, origin: 'evil' }, false],
    ['with a host that is not one', { host: 'a b', origin: OWN }, false],
    ['without both headers', { host: HOST }, false],
    ['behind a proxy', { host: INTERNAL, origin: OWN, 'x-forwarded-host': HOST, 'x-forwarded-proto': 'https' }, true],
    ['behind two proxies', { host: INTERNAL, origin: OWN, 'x-forwarded-host': `${HOST}, b.internal` }, true],
    [
      'behind a proxy that sends Forwarded',
      { host: INTERNAL, origin: OWN, forwarded: `for=1.2.3.4;Host="${HOST}"` },
      true,
    ],
    [
      'of the http page of an https host',
      { host: HOST, origin: `http://${HOST}`, 'x-forwarded-proto': 'https' },
      false,
    ],
    [
      'of another site, behind a proxy',
      { host: INTERNAL, origin: 'https://evil.example', 'x-forwarded-host': HOST },
      false,
    ],
  ])('%s: %j is from the same origin: %s', (_title, headers, expected) => {
    expect(isSameOrigin({ headers })).toBe(expected)
  })

  test.each<['http' | 'https', Readonly<Record<string, string>>, boolean]>([
    ['http', {}, false],
    ['https', {}, true],
    ['http', { 'x-forwarded-proto': 'https' }, true],
    ['http', { 'x-forwarded-proto': 'HTTPS, http' }, true],
    ['http', { 'x-forwarded-proto': 'http, https' }, false],
    ['http', { forwarded: 'for=1.2.3.4;proto=https' }, true],
  ])('over %s with %j came over https: %s', (protocol, headers, expected) => {
    expect(cameOverHttps({ protocol, headers })).toBe(expected)
  })
})
