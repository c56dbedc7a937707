package fuse_index.spark.java.server;

import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.InvalidKeySpecException;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.*;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A certificate and its key in PEM's format, written as HiveServer2 wants them. */
public class KeyStores {
  private static final Pattern PKCS8 = Pattern.compile("-----BEGIN PRIVATE KEY-----(.*?)-----END PRIVATE KEY-----", Pattern.DOTALL);
  private static final String[] ALGORITHMS = {"RSA", "EC", "EdDSA"};

  /** Raises IllegalArgumentException for a key that is not in PKCS#8's format. */
  public static void write(String chain, String privateKey, String place, String password) throws GeneralSecurityException, IOException {
    KeyStore store = KeyStore.getInstance("PKCS12");
    store.load(null, null);
    store.setKeyEntry("server", key(privateKey), password.toCharArray(), chain(chain));
    OutputStream out = new FileOutputStream(place);
    try {
      store.store(out, password.toCharArray());
    } finally {
      out.close();
    }
  }

  private static Certificate[] chain(String place) throws GeneralSecurityException, IOException {
    InputStream in = new FileInputStream(place);
    try {
      return (Certificate[]) CertificateFactory.getInstance("X.509").generateCertificates(in).toArray(new Certificate[0]);
    } finally {
      in.close();
    }
  }

  private static PrivateKey key(String place) throws GeneralSecurityException, IOException {
    Matcher found = PKCS8.matcher(new String(Files.readAllBytes(Paths.get(place)), StandardCharsets.US_ASCII));
    if (!found.find()) throw new IllegalArgumentException(place + " has no key in PKCS#8's format");
    PKCS8EncodedKeySpec encoded = new PKCS8EncodedKeySpec(Base64.getMimeDecoder().decode(found.group(1)));
    GeneralSecurityException refusal = null;
    for (String algorithm : ALGORITHMS) {
      try {
        return KeyFactory.getInstance(algorithm).generatePrivate(encoded);
      } catch (InvalidKeySpecException other) {
        refusal = other;
      }
    }
    throw refusal;
  }
}
