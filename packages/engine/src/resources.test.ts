import { describe, expect, it } from 'vitest'
import { openResources } from './resources.ts'

/** Openers that write down what happens to them. */
function openers({ failsToOpen, failsToClose }: { failsToOpen?: string; failsToClose?: string } = {}) {
  const events: string[] = []
  const opener = (name: string) => ({
    async open() {
      if (name === failsToOpen) throw new Error(`${name} does not open`)
      events.push(`open ${name}`)
      return name.toUpperCase()
    },
    async close(value: string) {
      events.push(`close ${value}`)
      if (name === failsToClose) throw new Error(`${name} does not close`)
    },
  })
  const errors: unknown[] = []
  return {
    openers: { db: opener('db'), cache: opener('cache'), mailer: opener('mailer') },
    events,
    errors,
    onCloseError: (error: unknown, resource: string) => void errors.push([resource, (error as Error).message]),
  }
}

describe('resources', () => {
  it('are opened in order and closed in reverse order', async () => {
    const given = openers()
    const resources = await openResources(given.openers, given.onCloseError)
    expect(resources.values).toEqual({ db: 'DB', cache: 'CACHE', mailer: 'MAILER' })
    expect(given.events).toEqual(['open db', 'open cache', 'open mailer'])
    given.events.length = 0
    await resources.close()
    expect(given.events).toEqual(['close MAILER', 'close CACHE', 'close DB'])
  })

  it('are closed once, however often that is asked for', async () => {
    const given = openers()
    const resources = await openResources(given.openers, given.onCloseError)
    await Promise.all([resources.close(), resources.close()])
    await resources.close()
    expect(given.events.filter((event) => event.startsWith('close'))).toHaveLength(3)
  })

  it('that were opened are closed again when a later one fails to open, and its error is thrown', async () => {
    const given = openers({ failsToOpen: 'mailer' })
    await expect(openResources(given.openers, given.onCloseError)).rejects.toThrow('mailer does not open')
    expect(given.events).toEqual(['open db', 'open cache', 'close CACHE', 'close DB'])
  })

  it('are all closed when one fails to close, and its error is reported by name', async () => {
    const given = openers({ failsToClose: 'cache' })
    const resources = await openResources(given.openers, given.onCloseError)
    await resources.close()
    expect(given.events.slice(3)).toEqual(['close MAILER', 'close CACHE', 'close DB'])
    expect(given.errors).toEqual([['cache', 'cache does not close']])
  })

  it('need no close function', async () => {
    const resources = await openResources({ config: { open: () => 1 } }, () => {})
    expect(resources.values).toEqual({ config: 1 })
    await resources.close()
  })
})
