package zveil.flink;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import javax.crypto.Cipher;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** AES-128-CMAC (RFC 4493) under one key: 128 bits that tell nothing of what they were made of. */
final class Code {
    private static final int BLOCK = 16;

    private final Cipher cipher;
    /** What the last block is mixed with: if it is whole, and if it had to be filled up. */
    private final byte[] whole;
    private final byte[] filled;
    private byte[] padded = new byte[4 * BLOCK];
    private byte[] sealed = new byte[4 * BLOCK];

    /** The two halves of the code that was made last. */
    long high;
    long low;

    Code(byte[] key) {
        try {
            // One block after the other, without an initial value: its last block is the code.
            cipher = Cipher.getInstance("AES/CBC/NoPadding");
            cipher.init(Cipher.ENCRYPT_MODE, new SecretKeySpec(key, "AES"),
                    new javax.crypto.spec.IvParameterSpec(new byte[BLOCK]));
            whole = twice(cipher.doFinal(new byte[BLOCK]));
            filled = twice(whole);
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException("this Java has no AES", error);
        }
    }

    /** Makes the code of a part of some bytes. */
    void of(byte[] text, int start, int length) {
        int blocks = Math.max(1, (length + BLOCK - 1) / BLOCK);
        int end = blocks * BLOCK;
        if (padded.length < end) {
            padded = new byte[2 * end];
            sealed = new byte[2 * end];
        }
        System.arraycopy(text, start, padded, 0, length);
        byte[] mixed = whole;
        if (length < end) {
            padded[length] = (byte) 0x80;
            java.util.Arrays.fill(padded, length + 1, end, (byte) 0);
            mixed = filled;
        }
        for (int at = 0; at < BLOCK; at++) {
            padded[end - BLOCK + at] ^= mixed[at];
        }
        try {
            cipher.doFinal(padded, 0, end, sealed, 0);
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException("AES failed", error);
        }
        ByteBuffer code = ByteBuffer.wrap(sealed, end - BLOCK, BLOCK);
        high = code.getLong();
        low = code.getLong();
    }

    /** Times x in the field of 2^128 elements. */
    private static byte[] twice(byte[] block) {
        byte[] found = new byte[BLOCK];
        for (int at = 0; at < BLOCK; at++) {
            int next = at + 1 < BLOCK ? (block[at + 1] & 0xFF) >> 7 : 0;
            found[at] = (byte) (block[at] << 1 | next);
        }
        if (block[0] < 0) {
            found[BLOCK - 1] ^= (byte) 0x87;
        }
        return found;
    }

    /** Derives key material for one purpose: HKDF with SHA-256 (RFC 5869), one block of it. */
    static byte[] derive(byte[] secret, String purpose, int length) {
        try {
            byte[] drawn = mac("zveil".getBytes(StandardCharsets.UTF_8)).doFinal(secret);
            Mac expand = mac(drawn);
            expand.update(purpose.getBytes(StandardCharsets.UTF_8));
            expand.update((byte) 1);
            return java.util.Arrays.copyOf(expand.doFinal(), length);
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException("this Java has no HMAC with SHA-256", error);
        }
    }

    private static Mac mac(byte[] key) throws GeneralSecurityException {
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(key, "HmacSHA256"));
        return mac;
    }
}
