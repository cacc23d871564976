// Loads Bull Board, whose packages are optional peers.

export interface BullBoard {
  readonly createBullBoard: typeof import('@bull-board/api').createBullBoard
  readonly BullMQAdapter: typeof import('@bull-board/api/bullMQAdapter').BullMQAdapter
  readonly FastifyAdapter: typeof import('@bull-board/fastify').FastifyAdapter
}

/** The version is pinned, because the board is adapted by overriding methods of its queue adapter. */
export const BULL_BOARD_PACKAGES = ['@bull-board/api', '@bull-board/fastify', '@bull-board/ui'] as const
export const BULL_BOARD_VERSION = '9.10.1'

/** Returns Bull Board, or undefined if one of its packages is not installed. */
export async function loadBullBoard(): Promise<BullBoard | undefined> {
  try {
    const [{ createBullBoard }, { BullMQAdapter }, { FastifyAdapter }] = await Promise.all([
      import('@bull-board/api'),
      import('@bull-board/api/bullMQAdapter'),
      import('@bull-board/fastify'),
    ])
    // createBullBoard() reads its pages from this package.
    import.meta.resolve('@bull-board/ui/package.json')
    return { createBullBoard, BullMQAdapter, FastifyAdapter }
  } catch (error) {
    if (isMissingPeer(error)) return undefined
    throw error
  }
}

/**
 * Returns whether one of the packages is missing. If any other module is missing, the installation is broken, and the error
 * must be reported.
 */
function isMissingPeer(error: unknown): boolean {
  const { code, message } = error as NodeJS.ErrnoException
  return code === 'ERR_MODULE_NOT_FOUND' && BULL_BOARD_PACKAGES.some((name) => message.includes(`'${name}`))
}
