// Operates the board in a real browser: logs in, reads the tabs, and presses buttons.
import { eventually } from '@bullpen/testkit'
import { describe, expect, test } from 'vitest'
import { openBoard, QUEUE } from './board.fixture.ts'
import { chromium, openBrowser } from './browser.fixture.ts'

async function openPage() {
  const board = await openBoard({ allowBoardChanges: true })
  const page = await openBrowser(chromium ?? '')
  /** Waits until the page contains the text. */
  const shows = (text: string) =>
    eventually(() => page.evaluate(`document.body?.textContent.includes(${JSON.stringify(text)})`), 15_000)
  /** Presses the first button with this label, once the page has one. */
  const press = async (label: string) => {
    const button = `[...document.querySelectorAll('button')].find(({ innerText, title }) =>
      [innerText.trim(), title].includes(${JSON.stringify(label)}))`
    await eventually(() => page.evaluate(`${button} !== undefined`), 15_000)
    await page.evaluate(`${button}.click()`)
  }
  const confirm = async (label: string) => {
    await press(label)
    await press('Confirm')
  }
  const openTab = (tab: string) => page.open(`${board.url}/board/queue/${QUEUE}?status=${tab}`)
  await page.open(`${board.url}/board/`)
  await shows('Log in')
  await page.evaluate(`document.querySelector('input[name=key]').value = ${JSON.stringify(board.key)}`)
  await page.evaluate(`document.querySelector('input[name=name]').value = 'ann'`)
  await press('Log in')
  await shows(QUEUE)
  return { ...board, openTab, shows, confirm }
}

describe.runIf(chromium !== undefined)('in a browser', { timeout: 120_000 }, () => {
  test('an operator sees why tasks are dead, retries all of them, and learns why other tasks can not be deleted', async () => {
    const { openTab, shows, confirm, enqueue, api, task, fixed, lines } = await openPage()
    const dead = await enqueue('bank.charge', { error: 'card_declined', customer: 1 })
    const cancelled = await enqueue('bank.charge', { customer: 2 }, { delay: '1h' })
    await api(`/v1/tasks/${cancelled}/cancel`, { by: 'bob' })
    await eventually(async () => (await task(dead)).status === 'dead')

    await openTab('cancelled')
    await shows('bank.charge · cancelled · by bob')
    await openTab('failed')
    await shows('bank.charge · dead · failed (card_declined)')
    fixed.add('card_declined')
    await confirm('Retry all')
    await shows('The retry was requested.')
    await eventually(async () => (await task(dead)).status === 'completed', 15_000)
    expect((await task(cancelled)).status).toBe('cancelled')

    await openTab('completed')
    await shows('bank.charge · completed')
    await confirm('Delete all')
    await shows('only dead tasks can be deleted')
    expect((await task(dead)).status).toBe('completed')
    expect(lines.filter(({ message }) => message === 'dead tasks: request accepted')).toMatchObject([
      { fields: { action: 'retry', matching: 1, by: expect.stringMatching(/^ann \(key ops /) } },
    ])
  })
})
