// Tests who may come in: keys, the development key, and the browser's session.
import { describe, expect, test } from 'vitest'
import { catalogue, DEV_KEY, KEY, NOW, problemIn, testApi } from '../api.fixture.ts'
import { createKeyring, isLoopback } from './keyring.ts'

const LIST = '/v1/tasks?queue=cpu&status=waiting'
const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

describe('a key', () => {
  test.each([
    ['absent', {}],
    ['wrong', bearer('test-key-0123456789abcdeg')],
    ['cut short', bearer(KEY.slice(0, -1))],
    ['empty', { authorization: 'Bearer ' }],
    ['sent as a password', { authorization: `Basic ${btoa(`user:${KEY}`)}` }],
    ['sent as a cookie', { cookie: `bullpen_session=${KEY}` }],
  ])('that is %s opens nothing', async (_name, headers) => {
    const { app } = await testApi()
    for (const url of [LIST, '/openapi.json', '/reference', '/reference/json', '/nowhere']) {
      const answer = await app.inject({ url, headers })
      expect(problemIn(answer)).toMatchObject({ status: 401, code: 'unauthorized' })
      expect(answer.headers['www-authenticate']).toBe('Bearer realm="bullpen"')
    }
    const answer = await app.inject({ method: 'POST', url: '/v1/tasks', headers, payload: { task: 'math.square' } })
    expect(problemIn(answer).code).toBe('unauthorized')
  })

  test('opens the API, whatever the case of its scheme', async () => {
    const { app } = await testApi()
    for (const authorization of [`Bearer ${KEY}`, `bearer  ${KEY}`]) {
      expect((await app.inject({ url: LIST, headers: { authorization } })).statusCode).toBe(200)
    }
  })
})

describe('the development key', () => {
  test.each(['127.0.0.1', '127.8.8.8', '::1', '::ffff:127.0.0.1'])('opens the API from %s', async (remoteAddress) => {
    const { app } = await testApi()
    expect((await app.inject({ url: LIST, headers: bearer(DEV_KEY), remoteAddress })).statusCode).toBe(200)
  })

  test.each(['10.0.0.7', '192.168.1.2', '::ffff:10.0.0.7', '2001:db8::1'])(
    'opens nothing from %s',
    async (remoteAddress) => {
      const { app } = await testApi()
      expect((await app.inject({ url: LIST, headers: bearer(DEV_KEY), remoteAddress })).statusCode).toBe(401)
      const login = `/board/login?key=${DEV_KEY}`
      expect((await app.inject({ url: login, remoteAddress })).statusCode).toBe(401)
    },
  )

  test.each(['x-forwarded-for', 'forwarded', 'x-real-ip'])('opens nothing through a proxy (%s)', async (header) => {
    const { app } = await testApi()
    const headers = { ...bearer(DEV_KEY), [header]: '127.0.0.1' }
    expect((await app.inject({ url: LIST, headers, remoteAddress: '127.0.0.1' })).statusCode).toBe(401)
  })

  test('knows this machine by every name it has', () => {
    expect(['127.0.0.1', '::1', '::ffff:127.1.2.3'].map(isLoopback)).toEqual([true, true, true])
    expect(['128.0.0.1', '::2', '::ffff:8.8.8.8', '', 'localhost'].map(isLoopback)).toEqual(Array(5).fill(false))
  })
})

describe('the login link', () => {
  async function logIn(key: string, next = '') {
    const api = await testApi()
    const answer = await api.app.inject(`/board/login?key=${key}${next}`)
    const [cookie] = answer.cookies
    return { ...api, answer, cookie, headers: { cookie: `${cookie?.name}=${cookie?.value}` } }
  }

  test('sets a cookie that scripts and other sites do not get, and goes to the board', async () => {
    const { answer, cookie } = await logIn(KEY)
    expect(answer.statusCode).toBe(303)
    expect(answer.headers.location).toBe('/board/')
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Lax', path: '/', maxAge: 43_200 })
    expect(cookie?.value).not.toContain(KEY)
  })

  test('lets the browser see everything and change nothing', async () => {
    const { app, headers } = await logIn(KEY)
    for (const url of [LIST, '/openapi.json', '/reference', '/reference/json']) {
      expect((await app.inject({ url, headers })).statusCode).toBe(200)
    }
    const payload = { task: 'math.square', input: { n: 1 } }
    expect((await app.inject({ method: 'POST', url: '/v1/tasks', headers, payload })).statusCode).toBe(401)
  })

  test('goes to the reference where it says so, and nowhere else', async () => {
    expect((await logIn(KEY, '&next=/reference')).answer.headers.location).toBe('/reference')
    for (const next of ['https://evil.example', '//evil.example', '/v1/tasks']) {
      const { answer } = await logIn(KEY, `&next=${encodeURIComponent(next)}`)
      expect(problemIn(answer).code).toBe('invalid_request')
    }
  })

  test('with a wrong key sets nothing', async () => {
    const { answer } = await logIn('test-key-0123456789abcdeg')
    expect(problemIn(answer)).toMatchObject({ status: 401, code: 'unauthorized' })
    expect(answer.cookies).toEqual([])
  })

  test('of the development key is worth nothing elsewhere', async () => {
    const { app, headers } = await logIn(DEV_KEY)
    expect((await app.inject({ url: LIST, headers })).statusCode).toBe(200)
    expect((await app.inject({ url: LIST, headers, remoteAddress: '10.0.0.7' })).statusCode).toBe(401)
  })
})

describe('a browser without a session', () => {
  test.each([
    ['/reference', '/reference'],
    ['/v1/tasks/cpu-0?next="><script>', '/board/'],
  ])('that opens %s is asked for a key', async (url, next) => {
    const { app } = await testApi()
    const answer = await app.inject({ url, headers: { accept: 'text/html,application/xhtml+xml' } })
    expect(answer.statusCode).toBe(401)
    expect(answer.headers['content-type']).toBe('text/html; charset=utf-8')
    expect(answer.body).toContain(`name="next" value="${next}"`)
    expect(answer.body).not.toContain('script')
  })

  test('that posts is told the problem', async () => {
    const { app } = await testApi()
    const answer = await app.inject({ method: 'POST', url: '/v1/tasks', headers: { accept: 'text/html' } })
    expect(problemIn(answer).code).toBe('unauthorized')
  })
})

describe('a session', () => {
  const here = { address: '127.0.0.1', forwarded: false }
  const ring = createKeyring([KEY])
  const key = ring.find(KEY, here)
  const session = key === undefined ? '' : ring.issueSession(key, NOW + 1_000)

  test('ends at its time', () => {
    expect(ring.acceptsSession(session, here, NOW + 999)).toBe(true)
    expect(ring.acceptsSession(session, here, NOW + 1_000)).toBe(false)
  })

  test('can not be prolonged or made up', () => {
    const [, signature = ''] = session.split('.')
    for (const forged of [
      `${NOW + 9_000}.${signature}`,
      `${NOW + 9_000}.`,
      `${NOW + 9_000}`,
      `9e99.${signature}`,
      '.',
    ]) {
      expect(ring.acceptsSession(forged, here, NOW)).toBe(false)
    }
  })

  test('ends with its key', () => {
    expect(createKeyring([`${KEY}2`]).acceptsSession(session, here, NOW)).toBe(false)
    expect(createKeyring([`${KEY}2`, KEY]).acceptsSession(session, here, NOW)).toBe(true)
  })

  test('is refused by the catalogue of another API with other keys', async () => {
    const { app } = await testApi({ keyring: createKeyring([`${KEY}2`]), catalogue })
    expect((await app.inject({ url: LIST, headers: { cookie: `bullpen_session=${session}` } })).statusCode).toBe(401)
  })
})
