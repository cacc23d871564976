// Tests which of Bull Board's texts are replaced.
import { assert, expect, test } from 'vitest'
import { boardTexts } from './board-texts.ts'
import { loadBullBoard } from './bull-board.ts'

test('the labels of the tabs are replaced in every language, and all other texts are kept', async () => {
  const bullBoard = await loadBullBoard()
  assert(bullBoard)
  expect(bullBoard.texts.size).toBeGreaterThan(10)
  for (const [path, texts] of bullBoard.texts) {
    expect(path).toMatch(/^static\/locales\/[a-z]{2}-[A-Z]{2}\/messages\.json$/)
    const given = texts as { readonly LOADING: string; readonly QUEUE: { readonly STATUS: object } }
    expect(boardTexts(texts)).toMatchObject({
      LOADING: given.LOADING,
      QUEUE: { STATUS: { ...given.QUEUE.STATUS, ...REPLACED } },
    })
  }
})

const REPLACED = {
  ...{ FAILED: 'Dead', PRIORITIZED: 'Retrying', DELAYED: 'Scheduled', PAUSED: 'Cancelled' },
  'WAITING-CHILDREN': 'Expired',
}

test('plural forms of a replaced text are removed', () => {
  const texts = { QUEUE: { ACTIONS: { RETRY_ALL_FAILED_one: 'one', RETRY_ALL_FAILED: 'many', PAUSE: 'Pause' } } }
  const { QUEUE } = boardTexts(texts) as { readonly QUEUE: { readonly ACTIONS: object } }
  expect(QUEUE.ACTIONS).toMatchObject({ RETRY_ALL_FAILED: 'Retry all {{count}} dead tasks', PAUSE: 'Pause' })
  expect(QUEUE.ACTIONS).not.toHaveProperty('RETRY_ALL_FAILED_one')
})
