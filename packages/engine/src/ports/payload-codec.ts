// The port that transforms payloads between the form in which Bullpen uses them and the form in which they are stored.

/**
 * Encodes payloads before they are stored and decodes them after they are read, for example to encrypt or to compress them. A
 * payload is the input of a task, its output, or the result of one of its steps, each as JSON text. Everything else is stored
 * without the codec: names, ids, tags, metadata, timeouts, progress, and attempt records with the messages of their errors.
 *
 * Every process that reads a payload needs a codec that can decode it. Payloads that were stored without a codec can be read by
 * all processes, so a codec can be introduced while tasks are waiting: first in the workers, then in the API.
 */
export interface PayloadCodec {
  /** Returns the text to store. Runs on the event loop, once for each payload that is written. It must not throw. */
  encode(json: string): string
  /**
   * Returns the JSON text that was encoded. Runs on the event loop, once for each payload that is read. If it throws, an attempt
   * fails with `unreadable_payload` and is retried, and a lookup returns the task without the payload.
   */
  decode(stored: string): string
}
