// Operates the board in a real browser: logs in, reads the tabs, and presses buttons.

import { amount, type Page, sharedBrowser } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { describe, expect, test } from 'vitest'
import { openBoard, QUEUE } from './board.fixture.ts'

/** Opens a board, and logs in to it on the page. */
async function openBoardOn(page: Page) {
  const board = await openBoard({ allowBoardChanges: true })
  const becomesTrue = (expression: string, expected: string) =>
    eventually(() => page.evaluate(expression)).catch(async (cause: unknown) => {
      const text = await page.evaluate<string>("location.href + ' ' + document.body.innerText.slice(0, 2_000)")
      throw new Error(`${expected} is not on the page: ${text}`, { cause })
    })
  /** Waits until the page contains the text. */
  const shows = (text: string) => becomesTrue(`document.body?.textContent.includes(${JSON.stringify(text)})`, text)
  const lacks = async (text: string) =>
    expect(await page.evaluate(`document.body.textContent.includes(${JSON.stringify(text)})`)).toBe(false)
  /** Presses the first button or link with this label, once the page has one. A number or an id may follow the label. */
  const press = async (label: string) => {
    const found = `[...document.querySelectorAll('a, button')].find(({ textContent, title }) =>
      [textContent.trim().replace(/(?: [0-9a-f]{16}|\\d+)$/, ''), title].includes(${JSON.stringify(label)}))`
    await becomesTrue(`${found} !== undefined`, label)
    await page.evaluate(`${found}.click()`)
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
  return { ...board, open: page.open, openTab, shows, lacks, press, confirm }
}

describe('in a browser', () => {
  const openPage = sharedBrowser()

  test('each status has its own tab, and a button that does not work says why', async () => {
    const { openTab, shows, lacks, confirm, enqueue, api, task } = await openBoardOn(await openPage())
    const dead = await enqueue('bank.charge', { error: 'card_declined', customer: 1 })
    const cancelled = await enqueue('bank.charge', { customer: 2 }, { delay: '1h' })
    const completed = await enqueue('bank.charge', { customer: 3 })
    await api(`/v1/tasks/${cancelled}/cancel`, { by: 'bob' })
    await eventually(async () => (await task(dead)).status === 'dead' && (await task(completed)).status === 'completed')

    await openTab('paused')
    await shows('bank.charge · cancelled · by bob')
    await lacks('bank.charge · dead')
    await openTab('failed')
    await shows('bank.charge · dead · failed (card_declined)')
    await lacks('bank.charge · cancelled')
    await openTab('completed')
    await shows('bank.charge · completed')
    await confirm('Delete all')
    await shows('only dead tasks can be deleted')
    expect((await task(completed)).status).toBe('completed')
  })

  test('a link on another site leads to the board, if the browser has a session', async () => {
    const { open, press, shows, url, enqueue } = await openBoardOn(await openPage())
    const id = await enqueue('idle.wait', {})
    await open(`data:text/html,<a href="${url}/board/queue/idle/${id}">to the task</a>`)
    await press('to the task')
    await shows('idle.wait · waiting')
  })

  test('an operator finds out why tasks are dead, retries those that can succeed, and deletes the rest', async () => {
    const { press, shows, confirm, api, board, fixed, lines, open, url } = await openBoardOn(await openPage())
    const times = amount({ small: 1, full: 50 })
    const reasons = { bank_away: 8 * times, card_expired: 7 * times, customer_gone: 5 * times }
    for (const [error, count] of Object.entries(reasons)) {
      const tasks = Array.from({ length: count }, (_, customer) => ({
        task: 'bank.charge',
        input: { error, customer },
      }))
      await api('/v1/tasks/bulk', { tasks })
    }
    const all = reasons.bank_away + reasons.card_expired + reasons.customer_gone
    const counts = async () => (await board('/queues')).queues[0].counts
    await eventually(async () => (await counts()).failed === all)
    fixed.add('bank_away').add('card_expired')

    await open(`${url}/board/`)
    const openKind = async (code: keyof typeof reasons) => {
      await press(code)
      await shows(`${reasons[code]} dead tasks have this kind of error.`)
      // The overview has a tab with this label, too, but none with the other one.
      await shows('LATEST')
      await press('DEAD')
      await shows(`bank.charge · dead · failed (${code})`)
    }
    for (const code of ['bank_away', 'card_expired'] as const) {
      await openKind(code)
      await confirm('Retry all')
      await shows(`Dead tasks that matched: ${reasons[code]}`)
      await open(`${url}/board/`)
    }
    await openKind('customer_gone')
    await confirm('Delete all')
    await shows('No dead task has this kind of error any more.')

    await eventually(async () => (await counts()).completed === all - reasons.customer_gone)
    expect((await counts()).failed).toBe(0)
    const by = expect.stringMatching(/^ann \(key ops /)
    expect(lines.filter(({ message }) => message === 'dead tasks: request accepted')).toMatchObject([
      { fields: { action: 'retry', matching: reasons.bank_away, by } },
      { fields: { action: 'retry', matching: reasons.card_expired, by } },
      { fields: { action: 'delete', matching: reasons.customer_gone, by } },
    ])
  })
})
