// Tests that a redirect is an error that names it, and that the client never follows one.
import { describe, expect, test } from 'vitest'
import { type Answer, api } from '../server.fixture.ts'

const STATUSES = [301, 302, 303, 307, 308]
const CALLS = ['enqueue', 'look-up', 'delete', 'events'] as const

async function call(kind: (typeof CALLS)[number], answers: readonly Answer[], path = '') {
  const { client, seen, url } = await api(answers)
  const calls = {
    enqueue: () => client.enqueueNamed('a', null),
    'look-up': () => client.task('cpu-1'),
    delete: () => client.deleteTask('cpu-1'),
    events: () => client.taskEvents('cpu-1').next(),
  }
  const error: unknown = await calls[kind]().catch((thrown: unknown) => thrown)
  return { error, seen, url: `${url}${path}` }
}

describe.each(CALLS)('%s', (kind) => {
  test.each(STATUSES)('that gets the redirect %i is refused after one request', async (status) => {
    const answers: readonly Answer[] = [
      [status, '', { location: 'https://user:pw@api.example.com/login?token=s3cret#x' }],
    ]
    const { error, seen, url } = await call(kind, answers)
    expect(error).toMatchObject({ code: 'unexpected_response', outcome: 'refused', status })
    const { message } = error as Error
    expect(message).toContain(`${url}/v1/tasks`)
    expect(message).toContain(`HTTP ${status}, which redirects to https://api.example.com/login;`)
    expect(message).not.toMatch(/s3cret|pw/)
    expect(seen).toHaveLength(1)
  })
})

test('the error of a redirect to the same route says which address to set', async () => {
  const { error } = await call('enqueue', [[308, '', { location: 'https://api.example.com/queue/v1/tasks' }]])
  expect(error).toMatchObject({ message: expect.stringContaining('set its address to https://api.example.com/queue') })
})

test('a redirect relative to the address is named in full', async () => {
  const { error, url } = await call('look-up', [[302, '', { location: '/login' }]])
  expect(error).toMatchObject({ message: expect.stringContaining(`redirects to ${url}/login;`) })
})

test('a redirect that a browser hides, or that the given fetch follows, is refused as well', async () => {
  for (const more of [
    { type: 'opaqueredirect', status: 0 },
    { redirected: true, url: 'https://b.example.com/x' },
  ]) {
    const fetch = async () => Object.defineProperties(Response.json({}), valuesOf(more))
    const { client } = await api([], { fetch })
    await expect(client.task('cpu-1')).rejects.toThrow('does not follow redirects')
  }
})

const valuesOf = (values: object) =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, { value }]))
