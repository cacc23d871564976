// Tests access control: API keys, the development key, and browser sessions.
import { describe, expect, test } from 'vitest'
import { catalogue, DEV_KEY, KEY, NOW, problemIn, testApi } from '../api.fixture.ts'
import { createKeyring, isLoopback } from './keyring.ts'

const LIST = '/v1/tasks?queue=cpu&status=waiting'
const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

const MISSING = "the API key is missing; send 'Authorization: Bearer KEY'"
const WRONG = 'the API does not accept this key'
const NO_SCHEME = `the Authorization header does not begin with "Bearer "; send 'Authorization: Bearer KEY'`

describe('an API key', () => {
  test.each([
    ['absent', {}, MISSING],
    ['wrong', bearer('test-key-0123456789abcdeg'), WRONG],
    ['incomplete', bearer(KEY.slice(0, -1)), WRONG],
    ['empty', { authorization: 'Bearer ' }, NO_SCHEME],
    ['sent without its scheme', { authorization: KEY }, NO_SCHEME],
    ['sent as a password', { authorization: `Basic ${btoa(`user:${KEY}`)}` }, NO_SCHEME],
    ['sent as a cookie', { cookie: `bullpen_session=${KEY}` }, MISSING],
  ])('that is %s is rejected with the reason', async (_name, headers, reason) => {
    const { app } = await testApi()
    for (const url of [LIST, '/openapi.json', '/reference', '/reference/json', '/nowhere']) {
      const answer = await app.inject({ url, headers })
      expect(problemIn(answer)).toMatchObject({ status: 401, code: 'unauthorized' })
      expect(problemIn(answer).detail).toMatch(new RegExp(`^${reason}`))
      expect(answer.headers['www-authenticate']).toBe('Bearer realm="bullpen"')
    }
    const answer = await app.inject({ method: 'POST', url: '/v1/tasks', headers, payload: { task: 'math.square' } })
    expect(problemIn(answer)).toMatchObject({ code: 'unauthorized', detail: reason })
    expect(answer.body).not.toContain(KEY.slice(0, -1))
  })

  test('is accepted regardless of the case of its scheme', async () => {
    const { app } = await testApi()
    for (const authorization of [`Bearer ${KEY}`, `bearer  ${KEY}`]) {
      expect((await app.inject({ url: LIST, headers: { authorization } })).statusCode).toBe(200)
    }
  })
})

describe('the development key', () => {
  test.each(['127.0.0.1', '127.8.8.8', '::1', '::ffff:127.0.0.1'])('is accepted from %s', async (remoteAddress) => {
    const { app } = await testApi()
    expect((await app.inject({ url: LIST, headers: bearer(DEV_KEY), remoteAddress })).statusCode).toBe(200)
  })

  test.each(['10.0.0.7', '192.168.1.2', '::ffff:10.0.0.7', '2001:db8::1'])(
    'is rejected from %s',
    async (remoteAddress) => {
      const { app } = await testApi()
      expect((await app.inject({ url: LIST, headers: bearer(DEV_KEY), remoteAddress })).statusCode).toBe(401)
      const login = `/board/login?key=${DEV_KEY}`
      expect((await app.inject({ url: login, remoteAddress })).statusCode).toBe(401)
    },
  )

  test.each(['x-forwarded-for', 'forwarded', 'x-real-ip'])('is rejected through a proxy (%s)', async (header) => {
    const { app } = await testApi()
    const headers = { ...bearer(DEV_KEY), [header]: '127.0.0.1' }
    expect((await app.inject({ url: LIST, headers, remoteAddress: '127.0.0.1' })).statusCode).toBe(401)
  })

  test('recognizes every loopback address', () => {
    expect(['127.0.0.1', '::1', '::ffff:127.1.2.3'].map(isLoopback)).toEqual([true, true, true])
    expect(['128.0.0.1', '::2', '::ffff:8.8.8.8', '', 'localhost'].map(isLoopback)).toEqual(Array(5).fill(false))
  })
})

describe('the login', () => {
  const FORM = { 'content-type': 'application/x-www-form-urlencoded' }

  async function post(fields: Readonly<Record<string, string>>, headers = {}) {
    const api = await testApi()
    const answer = await api.app.inject({
      method: 'POST',
      url: '/board/login',
      headers: { ...FORM, ...headers },
      payload: new URLSearchParams(fields).toString(),
    })
    const [cookie] = answer.cookies
    return { ...api, answer, cookie, headers: { cookie: `${cookie?.name}=${cookie?.value}` } }
  }

  test('form is shown, and posts the key', async () => {
    const { app } = await testApi()
    const answer = await app.inject('/board/login')
    expect(answer.statusCode).toBe(200)
    expect(answer.headers['content-type']).toBe('text/html; charset=utf-8')
    expect(answer.headers['content-security-policy']).toContain("form-action 'self'")
    expect(answer.headers['x-frame-options']).toBe('DENY')
    expect(answer.body).toContain('<form method="post" action="/board/login">')
  })

  test('sets a cookie that scripts and other sites cannot read, and leads to the board', async () => {
    const { answer, cookie } = await post({ key: KEY })
    expect(answer.statusCode).toBe(303)
    expect(answer.headers.location).toBe('/board/')
    const paths = ['/board', '/reference', '/openapi.json', '/v1']
    expect(answer.cookies).toEqual(
      paths.map((path) => expect.objectContaining({ httpOnly: true, sameSite: 'Strict', path, maxAge: 43_200 })),
    )
    expect(cookie).not.toHaveProperty('secure')
    expect(cookie?.value).not.toContain(KEY)
  })

  test('over https sets a cookie that is sent only over https', async () => {
    const { answer } = await post({ key: KEY }, { 'x-forwarded-proto': 'https' })
    expect(answer.cookies.map(({ secure }) => secure)).toEqual([true, true, true, true])
  })

  test('permits reading everything but changing nothing', async () => {
    const { app, headers } = await post({ key: KEY })
    for (const url of [LIST, '/openapi.json', '/reference', '/reference/json']) {
      expect((await app.inject({ url, headers })).statusCode).toBe(200)
    }
    const payload = { task: 'math.square', input: { n: 1 } }
    expect((await app.inject({ method: 'POST', url: '/v1/tasks', headers, payload })).statusCode).toBe(401)
  })

  test('leads to the board or to the reference, and to no other page', async () => {
    expect((await post({ key: KEY, next: '/reference' })).answer.headers.location).toBe('/reference')
    for (const next of ['https://evil.example', '//evil.example', '/v1/tasks']) {
      expect((await post({ key: KEY, next })).answer.headers.location).toBe('/board/')
    }
  })

  test.each([{ key: 'test-key-0123456789abcdeg', next: '/reference' }, { next: '/reference' }])(
    'with %j shows the form again, with the reason',
    async (fields) => {
      const { answer } = await post(fields)
      expect(answer.statusCode).toBe(401)
      expect(answer.body).toContain('the API does not accept this key')
      expect(answer.body).toContain('name="next" value="/reference"')
      expect(answer.cookies).toEqual([])
    },
  )

  test('accepts only a form', async () => {
    const { answer } = await post({ key: KEY }, { 'content-type': 'text/plain' })
    expect(problemIn(answer)).toMatchObject({ status: 415, code: 'unsupported_media_type' })
  })

  test('with the development key is not accepted from another machine', async () => {
    const { app, headers } = await post({ key: DEV_KEY })
    expect((await app.inject({ url: LIST, headers })).statusCode).toBe(200)
    expect((await app.inject({ url: LIST, headers, remoteAddress: '10.0.0.7' })).statusCode).toBe(401)
  })
})

describe('the login link', () => {
  const follow = async (key: string, more = '') => (await testApi()).app.inject(`/board/login?key=${key}${more}`)

  test('logs in with the development key', async () => {
    const answer = await follow(DEV_KEY, '&next=/reference')
    expect(answer.statusCode).toBe(303)
    expect(answer.headers.location).toBe('/reference')
    expect(answer.headers['referrer-policy']).toBe('no-referrer')
    expect(answer.cookies).toHaveLength(4)
  })

  test('rejects other keys, because they must not appear in an address', async () => {
    const answer = await follow(KEY)
    expect(answer.statusCode).toBe(401)
    expect(answer.body).toContain('Only a development key can be used in a link.')
    expect(answer.cookies).toEqual([])
  })

  test('with a wrong key shows the form, with the reason', async () => {
    const answer = await follow('test-key-0123456789abcdeg')
    expect(answer.statusCode).toBe(401)
    expect(answer.body).toContain('the API does not accept this key')
    expect(answer.cookies).toEqual([])
  })
})

describe('a browser without a session', () => {
  test.each([
    ['/reference', '/reference'],
    ['/v1/tasks/cpu-0?next="><script>', '/board/'],
  ])('that opens %s is shown the login form', async (url, next) => {
    const { app } = await testApi()
    const answer = await app.inject({ url, headers: { accept: 'text/html,application/xhtml+xml' } })
    expect(answer.statusCode).toBe(401)
    expect(answer.headers['content-type']).toBe('text/html; charset=utf-8')
    expect(answer.body).toContain(`name="next" value="${next}"`)
    expect(answer.body).not.toContain('script')
  })

  test('that follows a link on another site loads the page again, because it may have a session that it has not sent', async () => {
    const { app } = await testApi()
    const open = (site: string) =>
      app.inject({ url: '/reference', headers: { accept: 'text/html', 'sec-fetch-site': site } })
    const first = await open('cross-site')
    expect(first.statusCode).toBe(401)
    expect(first.body).toContain('<meta http-equiv="refresh" content="0">')
    for (const site of ['same-origin', 'none']) expect((await open(site)).body).toContain('<form method="post"')
  })

  test('that posts is answered with a problem', async () => {
    const { app } = await testApi()
    const answer = await app.inject({ method: 'POST', url: '/v1/tasks', headers: { accept: 'text/html' } })
    expect(problemIn(answer).code).toBe('unauthorized')
  })
})

describe('a session', () => {
  const here = { address: '127.0.0.1', forwarded: false }
  const ring = createKeyring([KEY])
  const key = ring.find(KEY, here)
  const session = key === undefined ? '' : ring.issueSession(key, NOW + 1_000, 'ann')

  test('expires', () => {
    expect(ring.findSession(session, here, NOW + 999)).toBeDefined()
    expect(ring.findSession(session, here, NOW + 1_000)).toBeUndefined()
  })

  test('names its key and its user', () => {
    expect(ring.findSession(session, here, NOW)).toEqual({ key, requester: 'ann' })
    const unnamed = key === undefined ? '' : ring.issueSession(key, NOW + 1_000, '')
    expect(ring.findSession(unnamed, here, NOW)).toEqual({ key, requester: undefined })
  })

  test('cannot be extended or forged', () => {
    const [, requester = '', signature = ''] = session.split('.')
    for (const forged of [
      `${NOW + 9_000}.${requester}.${signature}`,
      `${NOW + 1_000}.${Buffer.from('bob').toString('base64url')}.${signature}`,
      `${NOW + 1_000}..${signature}`,
      `${NOW + 9_000}.${requester}.`,
      `${NOW + 9_000}`,
      `9e99.${requester}.${signature}`,
      '..',
    ]) {
      expect(ring.findSession(forged, here, NOW)).toBeUndefined()
    }
  })

  test('ends when its key is removed', () => {
    expect(createKeyring([`${KEY}2`]).findSession(session, here, NOW)).toBeUndefined()
    expect(createKeyring([`${KEY}2`, KEY]).findSession(session, here, NOW)).toBeDefined()
  })

  test('is rejected by an API with other keys', async () => {
    const { app } = await testApi({ keyring: createKeyring([`${KEY}2`]), catalogue })
    expect((await app.inject({ url: LIST, headers: { cookie: `bullpen_session=${session}` } })).statusCode).toBe(401)
  })
})
